//! Digests and draws beside those of CPython 3.11 with cbor2 6.3 and xxhash 4.1.

use proptest::prelude::*;
use servebench_hashes::{
    Algorithm, Digest, Item, Payload, blocks, chain, first_parent, measure_blocks, measure_calls,
};

/// Digests in the order of [`Algorithm::ALL`].
type Wanted = [&'static str; 4];

fn digests(parent: &[u8], tokens: &[u32]) -> Vec<String> {
    let digest = |algorithm: Algorithm| algorithm.digest(&Item { parent, tokens }).to_string();
    Algorithm::ALL.map(digest).to_vec()
}

#[test]
fn items_of_every_shape() {
    let rising: Vec<u8> = (0..32).collect();
    let cases: [(&[u8], &[u32], Wanted); 6] = [
        (
            &[],
            &[],
            [
                "235980f7d0d0804d687a5251fe9c36559348abd762821bd3ca01370227a2653c",
                "3bbd1fb3e0f8177223e05539f025f2a2dcc4ae4f6c7c0d8088aa423b4ebeef34",
                "850256685bc5f43baec8dbccdf40cf55",
                "ff7931e0aff6f5896e56716cef2c4b9d",
            ],
        ),
        (
            &[1],
            &[0],
            [
                "b53833f3acbd35c802bfb98fd466cc6a0ce7f36fc571c8c0e6a7c47007180295",
                "ca3e650244b402ee8f776ff5a778c5f80dc14b46a4f5824648c227c6fc4978af",
                "2c69c0f6cabf465b1f0beba9cfaefdbb",
                "7356e71bc94b3785dd6ab09832360e2f",
            ],
        ),
        (
            &rising[..16],
            &[255, 256],
            [
                "dee63b27e4f04dc26b9ad4f7d5748e802fa07aebad503358e079868f423ed686",
                "063799ecf946802de1842520a26c842420a026245a339e9fe34be97bb8bd5321",
                "671d4f439c704a8de2e0e25e9cea1f3c",
                "a445f5ef25b4af2d7f66f20f3168db87",
            ],
        ),
        (
            &rising,
            &[65_535, 65_536, 2_147_483_647],
            [
                "85be5778f2b10f8ba9e3e024a594d2eecb1f62f7938f6c75d15a888ee1b50730",
                "740bf68d4b13dc1b6c72db1205593ea06b04fe099b2490c5bac9c351052c62dd",
                "7570a6730b357173a6fb56ea58ebf2fa",
                "b8418b67ed347d9a5dc72a18124288df",
            ],
        ),
        (
            &rising,
            &[2_147_483_648, 4_294_967_295, 7, 8],
            [
                "5905efdfd2957df2f3d7336b71baea66624cd9cc9823e07e7d78ec33182b57d9",
                "de6eb8e453e7463dc19b0d5cb591a5ea2f7cf1a00491b29e1702187281e7be97",
                "54007e8d6eb3757a8c1c739f5017e3e3",
                "bc3506b82ac2d5df8cec387639fa616e",
            ],
        ),
        (
            &[0; 300],
            &[1, 2, 3, 4],
            [
                "236a32f9d1eac7df5b659114e2f23f1518e70e2dd9e36099829e3224951b5ad0",
                "318594c8dae202550da9e0cf67fbb515279ce9cf45249ac5de120f0be3da1e5a",
                "fd231688f98d3795fbb2621348def52a",
                "9f53b9e061784795f4ad7737298228b4",
            ],
        ),
    ];
    for (parent, tokens, wanted) in cases {
        assert_eq!(digests(parent, tokens), wanted, "{tokens:?}");
    }
}

/// A pickle of more than 64 KB has several frames.
#[test]
fn long_blocks() {
    let cases: [(u32, &str, &str); 5] = [
        (13_091, "3a3c6ca121d407ec24a87d0219227724", "fe1000870897a4d0e574aea71c3964f0"),
        (13_093, "c41a7edd2de72ba5ae0ead0c4f193bd2", "7e55c4fe11362a9e5c904ffb628b7f21"),
        (21_846, "dea6195e2911bf77a4d98b53213d37bf", "7f71c9ecca284d9f3ca3c209171b2fd3"),
        (50_000, "6e652589fe4a58bf3819d4937983cece", "d1ec52164e8f94cfd3b714384ad4ff7d"),
        (65_531, "c4881eb169ae5d314f0d791d56c5be45", "bfe65ce7f6e6542eadfde70bf61d0110"),
    ];
    for (count, pickle, cbor) in cases {
        let tokens: Vec<u32> = (0..count).map(|index| index * 7919 % 200_000).collect();
        assert_eq!(digests(&[0; 32], &tokens)[2..], [pickle, cbor], "{count}");
    }
}

#[test]
fn texts() {
    let digests = |text: &str| Algorithm::ALL.map(|it| first_parent(it, text).to_string());
    assert_eq!(
        digests("0")[2..],
        ["6fb31cc38bba6066183f7f2104b9c051", "1ebe36576dcb573f26b99533a20aaeca"]
    );
    assert_eq!(
        digests("")[2..],
        ["6b3b164a79fc6c08c6efa28fc1922294", "902bbcf97174df1ea0a482954fa7b32a"]
    );
    let long = digests(&"x".repeat(300));
    assert_eq!(long[2..], ["fd7dc0ccab391c9328218e33e4cc3522", "e34fac00b00eb1a04d379917fdff26c2"]);
}

#[test]
fn the_payload_of_the_call_benchmark() {
    let payload = Payload::new(42);
    let bytes = Digest::new(&payload.bytes).to_string();
    assert_eq!(bytes, "9d79b1a37f31801cd11a6706fb40d6bd57526846903bb13ede562439e9c1b823");
    assert_eq!(payload.numbers[..4], [772_247, 107_474, 709_571, 776_647]);
    assert_eq!(
        digests(&payload.bytes, &payload.numbers)[0],
        "e4afdf5e54cc5cec51e74caf12de36b408e1da1e67ec06cb58ad618559e51332"
    );
}

#[test]
fn the_chain_of_the_block_benchmark() {
    let blocks = blocks(10, 32, 32_000, 0);
    assert_eq!((&blocks[0][..4], blocks[9][31]), (&[27_670, 12_623, 24_836, 29_171][..], 10_205));
    let last = Algorithm::ALL.map(|it| chain(it, first_parent(it, "0"), &blocks).to_string());
    assert_eq!(
        last,
        [
            "22d85a184197daefc7a1ee5e91aa463ee567adaae7c920b7d0e276ce66100dde",
            "1baa9f6ee56266aeca39b973c300adce3b5fe8231d273c1ec68c5c7a81d04b64",
            "b46b33b898dbee2fa4b6e6e4a636698a",
            "9f3cb7655ad5549914c839738d0d1fa2",
        ]
    );
}

#[test]
fn a_clock_that_ticks_gives_exact_times() {
    let mut time = 0;
    let mut tick = || {
        time += 2_000_000;
        time
    };
    let timing = measure_blocks(Algorithm::Xxhash, "0", &blocks(4, 8, 100, 1), 3, &mut tick);
    assert!((timing.best_s - 0.002).abs() < 1e-12 && (timing.mean_s - 0.002).abs() < 1e-12);
    assert!((timing.tokens_per_s - 16_000.0).abs() < 1e-6, "{timing:?}");

    let calls = measure_calls(&Payload::new(1), 5, tick);
    assert_eq!(calls.len(), 5);
    for call in calls {
        assert!((call.mean_us - 2000.0).abs() < 1e-9 && call.deviation_us.abs() < 1e-9, "{call:?}");
    }
}

#[test]
fn names_are_read_back() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
    }
    assert!("md5".parse::<Algorithm>().is_err());
}

proptest! {
    /// Scratch space of an earlier call changes nothing, and other blocks have other digests.
    #[test]
    fn digests_depend_on_the_item_alone(
        parent in any::<Vec<u8>>(),
        tokens in proptest::collection::vec(any::<u32>(), 0..40),
        dirt in any::<Vec<u8>>(),
    ) {
        let item = Item { parent: &parent, tokens: &tokens };
        for algorithm in Algorithm::ALL {
            let mut scratch = dirt.clone();
            let digest = algorithm.digest_with(&item, &mut scratch);
            prop_assert_eq!(digest, algorithm.digest(&item));
            let longer: Vec<u32> = tokens.iter().copied().chain([0]).collect();
            prop_assert_ne!(digest, algorithm.digest(&Item { tokens: &longer, ..item }));
        }
    }
}
