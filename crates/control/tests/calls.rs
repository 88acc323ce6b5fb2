//! The calls, made to the simulated server over loopback.

use servebench_control::{Control, ControlError, Family, ProfileRequest};
use servebench_http::{BaseUrl, Caller, Target, TcpConnect, TlsOptions};
use servebench_sim::{Sim, SimConfig, SimHandle};

async fn control(sim: &SimHandle, family: Family) -> Control<TcpConnect> {
    let base: BaseUrl = sim.url().parse().expect("a URL");
    let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.expect("loopback");
    Control::new(Caller::new(connect, Target::new(base)), family)
}

fn sim(faults: &str) -> SimHandle {
    let config = SimConfig::default().patched(faults.as_bytes()).expect("a configuration");
    Sim::new(config).spawn_in_thread().expect("a server")
}

#[tokio::test]
async fn a_profile_is_started_and_stopped() {
    let sim = sim("{}");
    let control = control(&sim, Family::Sglang).await;
    let stopped = control.stop_profile().await;
    assert!(matches!(stopped, Err(ControlError::Refused { status: 500, .. })), "{stopped:?}");
    control.start_profile(&ProfileRequest::default()).await.expect("it starts");
    let again = control.start_profile(&ProfileRequest::default()).await.expect_err("it runs");
    assert!(again.to_string().contains("already in progress"), "{again}");
    control.stop_profile().await.expect("it stops");
    control.start_configured_profile().await.expect("it starts without a body, too");
    control.stop_profile().await.expect("it stops");
}

#[tokio::test]
async fn servers_say_what_they_are() {
    let sglang = sim("{}");
    let control_of = control(&sglang, Family::Other).await;
    assert_eq!(control_of.detect().await.expect("an answer").family(), Family::Sglang);

    let not_found = r#"{"faults":
        [{"when": {"path": "/server_info"}, "action": {"status": {"code": 404}}}]}"#;
    let other = sim(not_found);
    let control_of = control(&other, Family::Sglang).await;
    let detected = control_of.detect().await.expect("an answer");
    assert_eq!(detected.family(), Family::Other);
    let info = detected.server_info().await.expect_err("it has none");
    assert!(matches!(info, ControlError::Unsupported { status: 404, .. }), "{info}");
}
