//! When requests start: burst, constant and Poisson arrival schedules for load tests.
