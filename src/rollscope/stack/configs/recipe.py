"""The README that goes with written files: what to run, what to paste, how to see that it works."""

from rollscope.stack.configs.compose import HOST_NAME

__all__ = ["compose_recipe", "existing_recipe", "native_recipe"]


def native_recipe(place: str, port: int, retention: str) -> str:
    """Say how to run the programs by hand, with the files beside this text."""
    return f"""\
# Monitoring of Rollscope, by hand

`rollscope server start --with prometheus,alertmanager,tempo,grafana` does all this by itself. These
are the same files, to be run as you like.

    rollscope view --dir RUNS --port {port} --token-file {place}/token
    prometheus --config.file={place}/prometheus/prometheus.yml \\
        --storage.tsdb.path={place}/data/prometheus --storage.tsdb.retention.time={retention} \\
        --web.listen-address=127.0.0.1:9090 --web.enable-lifecycle --enable-feature=exemplar-storage
    alertmanager --config.file={place}/alertmanager/alertmanager.yml \\
        --storage.path={place}/data/alertmanager --web.listen-address=127.0.0.1:9093 \\
        --cluster.listen-address=
    tempo -config.file={place}/tempo/tempo.yaml
    {_forwarder(f"{place}/data/forwarder")}
    grafana server --config {place}/grafana/grafana.ini --homepath /usr/share/grafana

`tempo/tempo.yaml` is for Tempo 2; `rollscope server start` writes that of the version it finds.

{_VERIFY}"""


def compose_recipe(place: str, port: int) -> str:
    """Say how to bring the containers up."""
    return f"""\
# Monitoring of Rollscope, in containers

Rollscope runs on the machine, the others in containers that reach it as `{HOST_NAME}`. So it has
to listen where they can reach it; its token keeps everybody else out.

    rollscope view --dir RUNS --host 0.0.0.0 --port {port} --allow-host {HOST_NAME} \\
        --token-file {place}/token
    docker compose -f {place}/compose.yaml up -d
    {_forwarder(f"{place}/data/forwarder")}

The containers run as the user who wrote these files, since the token and Grafana's password are
readable for that user only. The password of Grafana's admin is in `grafana/password`; everybody on
this machine may look without it.

{_VERIFY}"""


def existing_recipe(page: str) -> str:
    """Say what to merge into a stack that is there already."""
    return f"""\
# Rollscope in an existing monitoring stack

## Prometheus

1. Put the token of the Rollscope server into a file that Prometheus alone can read, as
   `/etc/prometheus/rollscope-token`, which `scrape.yml` names in two places (`credentials_file`).
   The server keeps its token in the file that `rollscope view --token-file FILE` names.
2. Paste the two jobs of `scrape.yml` below `scrape_configs:` of your `prometheus.yml`. The first
   asks Rollscope for the metrics of its runs; the second asks the inference engines that Rollscope
   knows, and learns of new ones by itself.
3. Copy `rules/` to where `rule_files:` points, and set the label that links in alerts are made of:

       global:
         external_labels:
           rollscope_url: "{page}"

4. For links from charts to sessions, start Prometheus with `--enable-feature=exemplar-storage`.
5. `promtool check config prometheus.yml`, then reload: `curl -X POST http://HOST:9090/-/reload`.

If Prometheus runs on another machine than Rollscope, start the latter with `--host 0.0.0.0`; a name
other than the machine's own needs `--allow-host NAME`.

## Alertmanager

Rollscope's alerts have the labels `alertname`, `severity` and `run`. A route of their own:

    routes:
      - matchers: ['alertname=~"Rollscope.+"']
        group_by: [alertname, run]
        receiver: YOUR-RECEIVER

## Tempo

Any receiver of OTLP over HTTP does:

    {_forwarder("STATE", "http://TEMPO:4318")}

## Grafana

1. Copy `grafana/provisioning/datasources/rollscope.yaml` into the `provisioning/datasources` of
   your Grafana and change the addresses. If you have such sources already, give them the uids
   `rollscope-prometheus` and `rollscope-tempo`, which the dashboards ask for.
2. Import `grafana/dashboards/*.json`, or copy them to where a provider of yours looks.

{_VERIFY}"""


def _forwarder(state: str, endpoint: str = "http://127.0.0.1:4418") -> str:
    return (
        f"rollscope export --every-run --dir RUNS --endpoint {endpoint} --follow "
        f"--state-dir {state}"
    )


_VERIFY = """\
## Verify

- Prometheus, Status, Targets: the job `rollscope` is up.
- The query `rollscope_run_info` has one row for each run.
- Prometheus, Alerts: the group of Rollscope's rules is listed.
- Grafana, Dashboards, Rollscope: the overview shows the run.
"""
