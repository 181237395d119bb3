"""The monitoring stack: finds Prometheus and its kin, configures, starts and watches them."""
