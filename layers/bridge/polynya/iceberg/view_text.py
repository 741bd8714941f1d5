"""The text of views, as DuckDB's parser reads it: native DuckLake runs it for all who query them.

So it may read tables and compute, and nothing else: no file, no address, no setting or secret of
the reader's DuckDB. The allowed nodes are listed; the parser's tree of a query must consist of
them.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..runtime.errors import BadRequest
from ..runtime.limited_process import Exceeded, call
from .sandbox import OutOfMemory, Unreadable, sandbox

NAMES = """
!__postfix !~~ !~~* % & && * ** + - ->> / // <-> << <=> <@ >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
abs acos acosh add age aggregate ago alias any_value apply approx_count_distinct approx_quantile
approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null
arg_min_nulls_last argmax argmin array_agg array_aggr array_aggregate array_append array_apply
array_cat array_concat array_contains array_cosine_distance array_cosine_similarity
array_cross_product array_distance array_distinct array_dot_product array_extract array_filter
array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
array_intersect array_length array_negative_dot_product array_negative_inner_product
array_pop_back array_pop_front array_position array_prepend array_push_back array_push_front
array_reduce array_resize array_reverse array_reverse_sort array_select array_slice array_sort
array_to_json array_to_string array_to_string_comma_default array_transform array_unique
array_value array_where array_zip ascii asin asinh atan atan2 atanh avg bar base64 bin bit_and
bit_count bit_length bit_or bit_position bit_xor bitstring bitstring_agg bool_and bool_or
cardinality cbrt ceil ceiling century char_length character_length chr concat concat_ws contains
corr cos cosh cot count count_if count_star countif covar_pop covar_samp cume_dist current_date
current_localtime current_localtimestamp current_user damerau_levenshtein date_add date_diff
date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek
dayofyear days_in_month decade decode degrees dense_rank divide editdist3 element_at encode
ends_with entropy enum_code enum_first enum_last enum_range enum_range_boundary epoch epoch_ms
epoch_ns epoch_us equi_width_bins era error even exp factorial favg fdiv fill filter first
first_value flatten floor fmod format format_bytes formatreadabledecimalsize formatreadablesize
from_base64 from_binary from_hex from_json from_json_strict fsum gamma gcd gen_random_uuid
generate_series geomean geometric_mean get_bit get_current_time get_current_timestamp grade_up
greatest greatest_common_divisor group_concat hamming hash hex histogram histogram_exact hour
ilike_escape instr isfinite isinf isnan isodow isoyear jaccard jaro_similarity
jaro_winkler_similarity json json_array json_array_length json_contains json_exists json_extract
json_extract_path json_extract_path_text json_extract_string json_group_array json_group_object
json_keys json_merge_patch json_object json_pretty json_quote json_structure json_transform
json_transform_strict json_type json_valid json_value julian kahan_sum kurtosis kurtosis_pop lag
last last_day last_value lcase lcm lead least least_common_multiple left left_grapheme len length
length_grapheme levenshtein lgamma like_escape list list_aggr list_aggregate list_any_value
list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance
list_cosine_similarity list_count list_distance list_distinct list_dot_product list_element
list_entropy list_extract list_filter list_first list_grade_up list_has list_has_all list_has_any
list_histogram list_indexof list_inner_product list_intersect list_kurtosis list_kurtosis_pop
list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
list_negative_inner_product list_pack list_position list_prepend list_product list_reduce
list_resize list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort
list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value
list_var_pop list_var_samp list_where list_zip listagg ln log log10 log2 lower lpad ltrim mad
make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz map
map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
map_extract_value map_from_entries map_keys map_values max max_by md5 md5_number md5_number_lower
md5_number_upper mean median microsecond millennium millisecond min min_by minute mismatches mod
mode month monthname multiply nanosecond nextafter nfc_normalize not_ilike_escape not_like_escape
now nth_value ntile nullif octet_length ord parse_dirname parse_dirpath parse_filename
parse_formatted_bytes parse_path percent_rank pi position pow power prefix printf product quantile
quantile_cont quantile_disc quarter radians random range rank rank_dense reduce regexp_escape
regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
regexp_split_to_array regexp_split_to_table regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy repeat replace reservoir_quantile reverse right
right_grapheme round round_even roundbankers row row_number row_to_json rpad rtrim second sem
session_user set_bit sha1 sha256 sign signbit sin sinh skewness split split_part sqrt st_asbinary
st_astext st_aswkb st_aswkt st_crs st_geomfromwkb st_intersects_extent st_setcrs starts_with
stddev stddev_pop stddev_samp str_split str_split_regex strftime string_agg string_split
string_split_regex string_to_array strip_accents strlen strpos strptime struct_concat
struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
struct_keys struct_pack struct_position struct_update struct_values substr substring
substring_grapheme subtract suffix sum sum_no_overflow sumkahan tan tanh time_bucket timezone
timezone_hour timezone_minute to_base to_base64 to_binary to_centuries to_days to_decades to_hex
to_hours to_json to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters
to_seconds to_timestamp to_weeks to_years today transaction_timestamp translate trim trunc
try_strptime typeof ucase unbin unhex unicode union_extract union_tag union_value unnest
unpivot_list upper url_decode url_encode user uuid uuid_extract_timestamp uuid_extract_version
uuidv4 uuidv7 var_pop var_samp variance variant_extract variant_typeof version wavg week weekday
weekofyear weighted_avg xor year yearweek
"""

FUNCTIONS = frozenset(NAMES.split())
"""The functions that the text of a view may call: those of DuckDB 1.5.5 that compute. Their results
depend only on their arguments, the time or random numbers; none of them has a side effect. All
others are refused, also those of extensions, macros and later versions."""

TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest"})


if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Json = dict[str, Any]
Parsed = TypeVar("Parsed")

CATALOG = "{DUCKLAKE_CATALOG}"
"""What DuckLake writes for the name under which the lake is attached."""

MOST_CHARACTERS = 100_000
MOST_WORDS = 20_000
"""Names, keywords and numbers; DuckDB's tree of so many takes 50 MB."""
MOST_WORDS_WITH_SETS = 1000
"""The same if grouping sets may be among them: the tree grows with the square of their names."""
MOST_COMMENTS = 1000
"""The time that DuckDB's parser takes for each grows with the text: 4 s for 20,000."""
MOST_LEVELS = 200
"""The deepest nesting of brackets."""
SECONDS, MEGABYTES = 5, 1024
"""The limits of the process that parses a text; most texts need half a second and 520 MB."""
WORD = re.compile(r"\w+")
SETS = re.compile(r"\b(rollup|cube|sets)\b", re.IGNORECASE)
TEXT = re.compile(r"'(?:[^']|'')*'")
BRACKET = re.compile(r"[(\[{]|[)\]}]")
QUOTED = re.compile(r'"(?:[^"]|"")*"')

TREE = "SELECT json_serialize_sql(CAST(? AS VARCHAR))"

EXPRESSIONS = frozenset(
    {
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
        *("CONSTANT", "DEFAULT", "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR"),
        *("POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"),
    }
)
"""The `class` of a node."""

NODES = frozenset(
    {
        *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"),
        *("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY"),
        *("PIVOT", "ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"),
        *("DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    }
)
"""The `type` of a node without a class: queries, items of FROM, and modifiers."""

TYPE_INFO = "_TYPE_INFO"
"""The end of the `type` of information about a column type."""

BUILT_IN_SCHEMAS = {("", ""), ("", "main"), ("system", "main"), ("", "pg_catalog")}

INTERNAL_VIEWS = "SELECT lower(view_name) FROM duckdb_views() WHERE internal"

SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog"})
SYSTEM_CATALOGS = frozenset({"system", "temp"})

FILE = re.compile(
    r"[/\\:*?\[]|\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx|avro|arrow|arrows|ipc|feather|orc|db"
    r"|duckdb|ddb|sqlite|sqlite3|ducklake|shp|gpkg|fgb|geojson|kml|vortex|lance|gz|zst|bz2|xz)(\.|$)"
)
"""Names that DuckDB could take for files if there is no such table, also `FROM orders.csv`."""


def check_length(text: str) -> None:
    """Refuse a text that is too long, or that DuckDB cannot have."""
    if "\0" in text or len(text) > MOST_CHARACTERS:
        raise BadRequest(f"the SQL of a view has a NUL, or more than {MOST_CHARACTERS} characters")


def _check_size(text: str) -> None:
    """Refuse a text that is certainly too expensive to parse."""
    check_length(text)
    words = sum(1 for _ in WORD.finditer(text))
    if words > MOST_WORDS:
        raise BadRequest(f"the SQL of a view has more than {MOST_WORDS:,} names and numbers")
    if words > MOST_WORDS_WITH_SETS and SETS.search(text):
        raise BadRequest(
            f"the SQL of a view has ROLLUP, CUBE or GROUPING SETS, and more than "
            f"{MOST_WORDS_WITH_SETS:,} names and numbers"
        )
    if text.count("/*") > MOST_COMMENTS:
        raise BadRequest(f"the SQL of a view has more than {MOST_COMMENTS:,} comments")
    brackets = BRACKET.finditer(TEXT.sub("", text))
    levels = accumulate(1 if bracket[0] in "([{" else -1 for bracket in brackets)
    if max(levels, default=0) > MOST_LEVELS:
        raise _too_deep()


def _too_deep() -> BadRequest:
    return BadRequest("the SQL of the view is nested too deeply")


class ViewText(NamedTuple):
    """The text of a view that was found to be a query of tables."""

    sql: str
    """Without semicolons at its end."""
    is_qualified: bool
    """As `names_are_qualified` has it."""


@lru_cache(maxsize=8)
def view_text(sql: str) -> ViewText:
    """The text of a view. It takes half a second, the first time.

    Raises:
        BadRequest: it is not one query of DuckDB without parameters, reads something other than
            tables, or is too large.
        OutOfTime: no time is left in the budget.
    """
    text = sql.strip().rstrip("; \t\r\n")
    _check_size(text)
    return _call_limited(parsed_view, text)


def _call_limited(function: Callable[[str], Parsed], text: str) -> Parsed:
    """Call a function with a text, in a process of its own."""
    try:
        return call(function, text, seconds=SECONDS, megabytes=MEGABYTES)
    except (Exceeded, OutOfMemory):
        raise BadRequest(
            "DuckDB needs too much time or memory to parse the SQL of the view: make it shorter"
        ) from None


def parsed_view(text: str) -> ViewText:
    """A text of a view, parsed without limits of time and memory. Raises: as `view_text`."""
    import duckdb

    with sandbox() as box:
        # DuckDB cannot parse the braces; any name works, because nothing is bound.
        named = text.replace(CATALOG, "lake")
        try:
            statements = box.con.extract_statements(named)
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise  # not a fault of the text: the error is the sandbox's
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise BadRequest(f"DuckDB cannot parse the SQL of the view: {reason}") from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise BadRequest("the SQL of a view must be one query of DuckDB")
        if statements[0].named_parameters:
            raise BadRequest("the SQL of a view must not have parameters")
        _check_tree(box.con, named)
    return ViewText(text, parsed_names(text))


def _check_tree(con: "DuckDBPyConnection", text: str) -> None:
    """Refuse a query that could read something other than tables.

    Raises:
        BadRequest: the message says what it reads.
    """
    [(tree,)] = con.execute(TREE, [text]).fetchall()
    try:
        document: Json = json.loads(tree)
    except RecursionError:
        raise _too_deep() from None
    if document["error"]:
        raise BadRequest("the SQL of a view must be one query that DuckDB can serialize")
    internal_views = {name for (name,) in con.execute(INTERNAL_VIEWS).fetchall()}
    for node in _nodes(document["statements"]):
        kind = node.get("class", node["type"])
        if kind == "BASE_TABLE":
            _check_table(node, internal_views)
        elif kind == "TABLE_FUNCTION":
            which = f"only {', '.join(sorted(TABLE_FUNCTIONS))}"
            _check_function(node["function"], "table function", TABLE_FUNCTIONS, which)
        elif kind in {"FUNCTION", "WINDOW"}:
            which = "only functions of DuckDB that compute"
            _check_function(node, "function", FUNCTIONS, which)


def _nodes(tree: Any) -> Iterator[Json]:
    """Every node of a tree that has a class or a type.

    Raises:
        BadRequest: a node is of a kind that is not allowed.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            kind, type_ = node.get("class"), node.get("type")
            if kind or isinstance(type_, str):
                is_allowed = (
                    kind in EXPRESSIONS
                    if kind
                    else type_ in NODES or str(type_).endswith(TYPE_INFO)
                )
                if not is_allowed:
                    raise BadRequest(
                        f"the SQL of a view must not have {kind or type_} in it: write a SELECT "
                        "from tables"
                    )
                yield node
            if kind != "CONSTANT":
                waiting += node.values()


def _check_table(node: Json, internal_views: set[str]) -> None:
    names = [node["catalog_name"], node["schema_name"], node["table_name"]]
    catalog, schema, table = (name.casefold() for name in names)
    full_name = ".".join(filter(None, names))
    is_internal = table in internal_views and schema in {"", "main"}
    if catalog in SYSTEM_CATALOGS or schema in SYSTEM_SCHEMAS or is_internal:
        raise BadRequest(f"the SQL of a view must not read {full_name}, which is not a table")
    if FILE.search(full_name.casefold()) or (not schema and "." in table):
        raise BadRequest(
            f"the SQL of a view must not read {full_name}, which DuckDB could take for a file: "
            "write the schema and the table, each without such characters"
        )


def _check_function(node: Json, kind: str, allowed: Collection[str], which: str) -> None:
    name = _function_name(node)
    if name not in allowed:
        raise BadRequest(
            f"the SQL of a view must not call the {kind} {name}, which whoever queries the view "
            f"would run: {which} are allowed"
        )


def _function_name(node: Json) -> str:
    """The name of a function of DuckDB in lower case, with its schema unless that is the usual
    one."""
    names = [str(node[key]).casefold() for key in ("catalog", "schema", "function_name")]
    is_built_in = (names[0], names[1]) in BUILT_IN_SCHEMAS
    return names[2] if is_built_in else ".".join(filter(None, names))


def names_are_qualified(text: str) -> bool:
    """Whether each table in the text of a view has its schema with it.

    DuckLake looks for the others in the schema of the view, whatever Iceberg's default-namespace.
    """
    _check_size(text)
    return _call_limited(parsed_names, text)


def parsed_names(text: str) -> bool:
    """Whether each table has its schema, without limits of time and memory."""
    try:
        with sandbox() as box:
            return _are_qualified(box.con, text.replace(CATALOG, "lake"))
    except Unreadable:
        return False


def _are_qualified(con: "DuckDBPyConnection", text: str) -> bool:
    import duckdb

    try:
        names = con.get_table_names(text, qualified=True)
    except duckdb.Error:
        # DuckDB 2.0 has aborted the sandbox's transaction.
        raise Unreadable("DuckDB cannot bind the text of the view") from None
    return all("." in QUOTED.sub("", name) for name in names)
