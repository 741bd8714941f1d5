CREATE TABLE public.ducklake_column (
    column_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    table_id bigint,
    column_order bigint,
    column_name character varying,
    column_type character varying,
    initial_default character varying,
    default_value character varying,
    nulls_allowed boolean,
    parent_column bigint,
    default_value_type character varying,
    default_value_dialect character varying
);
CREATE TABLE public.ducklake_column_mapping (
    mapping_id bigint,
    table_id bigint,
    type character varying
);
CREATE TABLE public.ducklake_column_tag (
    table_id bigint,
    column_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    key character varying,
    value character varying
);
CREATE TABLE public.ducklake_data_file (
    data_file_id bigint NOT NULL,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    file_order bigint,
    path character varying,
    path_is_relative boolean,
    file_format character varying,
    record_count bigint,
    file_size_bytes bigint,
    footer_size bigint,
    row_id_start bigint,
    partition_id bigint,
    encryption_key character varying,
    mapping_id bigint,
    partial_max bigint
);
CREATE TABLE public.ducklake_delete_file (
    delete_file_id bigint NOT NULL,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    data_file_id bigint,
    path character varying,
    path_is_relative boolean,
    format character varying,
    delete_count bigint,
    file_size_bytes bigint,
    footer_size bigint,
    encryption_key character varying,
    partial_max bigint
);
CREATE TABLE public.ducklake_file_column_stats (
    data_file_id bigint,
    table_id bigint,
    column_id bigint,
    column_size_bytes bigint,
    value_count bigint,
    null_count bigint,
    min_value character varying,
    max_value character varying,
    contains_nan boolean,
    extra_stats character varying
);
CREATE TABLE public.ducklake_file_partition_value (
    data_file_id bigint,
    table_id bigint,
    partition_key_index bigint,
    partition_value character varying
);
CREATE TABLE public.ducklake_file_variant_stats (
    data_file_id bigint,
    table_id bigint,
    column_id bigint,
    variant_path character varying,
    shredded_type character varying,
    column_size_bytes bigint,
    value_count bigint,
    null_count bigint,
    min_value character varying,
    max_value character varying,
    contains_nan boolean,
    extra_stats character varying
);
CREATE TABLE public.ducklake_files_scheduled_for_deletion (
    data_file_id bigint,
    path character varying,
    path_is_relative boolean,
    schedule_start timestamp with time zone
);
CREATE TABLE public.ducklake_inlined_data_1_1 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    s bytea,
    n double precision,
    d character varying,
    m numeric(9,2),
    ts character varying,
    b bytea,
    l character varying
);
CREATE TABLE public.ducklake_inlined_data_1_2 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    s bytea,
    n double precision,
    d character varying,
    m numeric(9,2),
    ts character varying,
    b bytea,
    l character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_3 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    name bytea,
    n double precision,
    d character varying,
    m numeric(9,2),
    ts character varying,
    b bytea,
    l character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_4 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    name bytea,
    d character varying,
    m numeric(9,2),
    ts character varying,
    b bytea,
    l character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_5 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i bigint,
    name bytea,
    d character varying,
    m numeric(9,2),
    ts character varying,
    b bytea,
    l character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_3_7 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    k bytea,
    v integer
);
CREATE TABLE public.ducklake_inlined_data_3_8 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    k bytea,
    v integer
);
CREATE TABLE public.ducklake_inlined_data_3_9 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    k bytea,
    v integer
);
CREATE TABLE public.ducklake_inlined_data_5_10 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    a integer
);
CREATE TABLE public.ducklake_inlined_data_6_12 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    a integer,
    s bytea
);
CREATE TABLE public.ducklake_inlined_data_tables (
    table_id bigint,
    table_name character varying,
    schema_version bigint
);
CREATE TABLE public.ducklake_inlined_delete_1 (
    file_id bigint,
    row_id bigint,
    begin_snapshot bigint
);
CREATE TABLE public.ducklake_inlined_delete_3 (
    file_id bigint,
    row_id bigint,
    begin_snapshot bigint
);
CREATE TABLE public.ducklake_inlined_delete_6 (
    file_id bigint,
    row_id bigint,
    begin_snapshot bigint
);
CREATE TABLE public.ducklake_macro (
    schema_id bigint,
    macro_id bigint,
    macro_name character varying,
    begin_snapshot bigint,
    end_snapshot bigint
);
CREATE TABLE public.ducklake_macro_impl (
    macro_id bigint,
    impl_id bigint,
    dialect character varying,
    sql character varying,
    type character varying
);
CREATE TABLE public.ducklake_macro_parameters (
    macro_id bigint,
    impl_id bigint,
    column_id bigint,
    parameter_name character varying,
    parameter_type character varying,
    default_value character varying,
    default_value_type character varying
);
CREATE TABLE public.ducklake_metadata (
    key character varying NOT NULL,
    value character varying NOT NULL,
    scope character varying,
    scope_id bigint
);
CREATE TABLE public.ducklake_name_mapping (
    mapping_id bigint,
    column_id bigint,
    source_name character varying,
    target_field_id bigint,
    parent_column bigint,
    is_partition boolean
);
CREATE TABLE public.ducklake_partition_column (
    partition_id bigint,
    table_id bigint,
    partition_key_index bigint,
    column_id bigint,
    transform character varying
);
CREATE TABLE public.ducklake_partition_info (
    partition_id bigint,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint
);
CREATE TABLE public.ducklake_schema (
    schema_id bigint NOT NULL,
    schema_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_name character varying,
    path character varying,
    path_is_relative boolean
);
CREATE TABLE public.ducklake_schema_versions (
    begin_snapshot bigint,
    schema_version bigint,
    table_id bigint
);
CREATE TABLE public.ducklake_snapshot (
    snapshot_id bigint NOT NULL,
    snapshot_time timestamp with time zone,
    schema_version bigint,
    next_catalog_id bigint,
    next_file_id bigint
);
CREATE TABLE public.ducklake_snapshot_changes (
    snapshot_id bigint NOT NULL,
    changes_made character varying,
    author character varying,
    commit_message character varying,
    commit_extra_info character varying
);
CREATE TABLE public.ducklake_sort_expression (
    sort_id bigint,
    table_id bigint,
    sort_key_index bigint,
    expression character varying,
    dialect character varying,
    sort_direction character varying,
    null_order character varying
);
CREATE TABLE public.ducklake_sort_info (
    sort_id bigint,
    table_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint
);
CREATE TABLE public.ducklake_table (
    table_id bigint,
    table_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_id bigint,
    table_name character varying,
    path character varying,
    path_is_relative boolean
);
CREATE TABLE public.ducklake_table_column_stats (
    table_id bigint,
    column_id bigint,
    contains_null boolean,
    contains_nan boolean,
    min_value character varying,
    max_value character varying,
    extra_stats character varying
);
CREATE TABLE public.ducklake_table_stats (
    table_id bigint,
    record_count bigint,
    next_row_id bigint,
    file_size_bytes bigint
);
CREATE TABLE public.ducklake_tag (
    object_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    key character varying,
    value character varying
);
CREATE TABLE public.ducklake_view (
    view_id bigint,
    view_uuid uuid,
    begin_snapshot bigint,
    end_snapshot bigint,
    schema_id bigint,
    view_name character varying,
    dialect character varying,
    sql character varying,
    column_aliases character varying
);
INSERT INTO public.ducklake_column VALUES (4, 1, NULL, 1, 4, 'd', 'date', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (5, 1, NULL, 1, 5, 'm', 'decimal(9,2)', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (6, 1, NULL, 1, 6, 'ts', 'timestamp', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (7, 1, NULL, 1, 7, 'b', 'blob', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (8, 1, NULL, 1, 8, 'l', 'list', NULL, 'NULL', true, NULL, '', 'duckdb');
INSERT INTO public.ducklake_column VALUES (9, 1, NULL, 1, 9, 'element', 'int32', NULL, 'NULL', true, 8, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (10, 7, NULL, 1, 10, 'x', 'int32', '42', '42', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (2, 1, 9, 1, 2, 's', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (2, 9, NULL, 1, 2, 'name', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (3, 1, 10, 1, 3, 'n', 'float64', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (1, 1, 11, 1, 1, 'i', 'int32', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (1, 11, NULL, 1, 1, 'i', 'int64', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (1, 15, NULL, 3, 1, 'k', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (2, 15, NULL, 3, 2, 'v', 'int32', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (1, 19, 21, 5, 1, 'a', 'int32', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (1, 22, NULL, 6, 1, 'a', 'int32', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_column VALUES (2, 22, NULL, 6, 2, 's', 'varchar', NULL, 'NULL', true, NULL, 'literal', 'duckdb');
INSERT INTO public.ducklake_data_file VALUES (0, 1, 2, NULL, NULL, 'ducklake-01a1fafb-9a10-7dbd-ae46-28d068ae4cb3.parquet', true, 'parquet', 20, 1602, 708, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (2, 1, 6, NULL, NULL, 'ducklake-01a1fafb-9aa1-79c5-8f7b-be1cb5052182.parquet', true, 'parquet', 2, 1239, 876, 23, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (5, 3, 17, NULL, NULL, 'k=k0/ducklake-01a1fafb-9b86-73d7-af63-9a7b8e7ffeea.parquet', true, 'parquet', 6, 381, 225, 0, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (6, 3, 17, NULL, NULL, 'k=k1/ducklake-01a1fafb-9b86-7caa-baaa-f68677a045d8.parquet', true, 'parquet', 6, 382, 225, 6, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (11, 6, 23, NULL, NULL, 'ducklake-01a1fafb-9c52-74b0-a860-dbd2289b70e5.parquet', true, 'parquet', 39, 837, 403, 0, NULL, NULL, NULL, 25);
INSERT INTO public.ducklake_delete_file VALUES (13, 6, 30, NULL, 11, 'ducklake-01a1fafb-9c98-758c-acce-82307940ae3a-delete.parquet', true, 'parquet', 37, 1027, 583, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 1, 107, 20, 0, '1', '20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 2, 118, 20, 0, 's1', 's9', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 3, 117, 20, 0, '-inf', '4.5', true, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 4, 108, 20, 0, '2024-01-02', '2024-01-21', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 5, 108, 20, 0, '1.01', '20.20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 6, 51, 20, 0, '2024-01-01 00:00:00.123456', '2024-01-01 00:00:00.123456', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 7, 48, 20, 0, '62', '62', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 9, 131, 20, 20, '1', '20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 1, 33, 2, 0, '7', '31', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 2, 47, 2, 0, 'updated', 'updated', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 3, 41, 2, 0, '1.75', '1e+300', false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 4, 33, 2, 0, '2024-01-08', 'infinity', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 5, 33, 2, 0, '-0.01', '7.07', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 6, 41, 2, 0, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 7, 35, 1, 1, '62', '62', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (2, 1, 9, 47, 1, 2, '7', '7', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 3, 1, 49, 6, 0, 'k0', 'k0', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 3, 2, 48, 6, 0, '0', '10', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (6, 3, 1, 49, 6, 0, 'k1', 'k1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (6, 3, 2, 49, 6, 0, '1', '11', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (11, 6, 1, 185, 39, 0, '100', '313', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (11, 6, 2, 75, 39, 0, 'first', 'third', NULL, NULL);
INSERT INTO public.ducklake_file_partition_value VALUES (5, 3, 0, 'k0');
INSERT INTO public.ducklake_file_partition_value VALUES (6, 3, 0, 'k1');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (8, 'main/m/ducklake-01a1fafb-9c11-7abd-99bd-0eb752c403f6.parquet', true, '2026-11-20 22:02:35.973798+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (9, 'main/m/ducklake-01a1fafb-9c28-7108-a303-1db218f73762.parquet', true, '2026-11-20 22:02:35.973798+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (10, 'main/m/ducklake-01a1fafb-9c3d-7eff-8924-569926eee61d.parquet', true, '2026-11-20 22:02:35.973798+00');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (22, 3, NULL, NULL, '\x', NULL, NULL, NULL, NULL, '\x', '[1]');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (20, 3, 5, 30, NULL, 'NaN', '0044-03-15 (BC)', NULL, NULL, '\x784646', '[]');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (21, 3, 6, 31, '\x69742773', 1e+300, 'infinity', -0.01, '9999-12-31 00:00:00', NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_2 VALUES (25, 8, 13, 40, '\x6c61746572', 1.5, NULL, 1.00, NULL, NULL, NULL, 7);
INSERT INTO public.ducklake_inlined_data_1_5 VALUES (26, 12, NULL, 5000000000, '\x72656e616d6564', NULL, NULL, NULL, NULL, NULL, 42);
INSERT INTO public.ducklake_inlined_data_5_10 VALUES (0, 20, NULL, 1);
INSERT INTO public.ducklake_inlined_data_5_10 VALUES (1, 20, NULL, 2);
INSERT INTO public.ducklake_inlined_data_6_12 VALUES (39, 28, 30, 1, '\x6166746572');
INSERT INTO public.ducklake_inlined_data_6_12 VALUES (40, 31, NULL, 2, '\x616761696e');
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_2', 2);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_3', 3);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_4', 4);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_5', 5);
INSERT INTO public.ducklake_inlined_data_tables VALUES (3, 'ducklake_inlined_data_3_7', 7);
INSERT INTO public.ducklake_inlined_data_tables VALUES (3, 'ducklake_inlined_data_3_8', 8);
INSERT INTO public.ducklake_inlined_data_tables VALUES (3, 'ducklake_inlined_data_3_9', 9);
INSERT INTO public.ducklake_inlined_data_tables VALUES (5, 'ducklake_inlined_data_5_10', 10);
INSERT INTO public.ducklake_inlined_data_tables VALUES (6, 'ducklake_inlined_data_6_12', 12);
INSERT INTO public.ducklake_inlined_delete_1 VALUES (0, 1, 4);
INSERT INTO public.ducklake_inlined_delete_1 VALUES (0, 4, 5);
INSERT INTO public.ducklake_inlined_delete_1 VALUES (0, 6, 6);
INSERT INTO public.ducklake_inlined_delete_3 VALUES (6, 1, 20);
INSERT INTO public.ducklake_inlined_delete_6 VALUES (11, 13, 27);
INSERT INTO public.ducklake_inlined_delete_6 VALUES (11, 26, 29);
INSERT INTO public.ducklake_metadata VALUES ('version', '0.4', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 7dbb2e646f', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.4/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_partition_column VALUES (4, 3, 0, 1, 'identity');
INSERT INTO public.ducklake_partition_info VALUES (4, 3, 16, NULL);
INSERT INTO public.ducklake_schema VALUES (0, 'bce04467-7f94-42e3-8863-ae27669f8db9', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema VALUES (2, '01a1fafb-9b3e-7e94-ae6f-568db95c69e0', 14, NULL, 'other one', '01a1fafb-9b3e-7e94-ae6f-568db95c69e0/', true);
INSERT INTO public.ducklake_schema_versions VALUES (1, 1, 1);
INSERT INTO public.ducklake_schema_versions VALUES (7, 2, 1);
INSERT INTO public.ducklake_schema_versions VALUES (9, 3, 1);
INSERT INTO public.ducklake_schema_versions VALUES (10, 4, 1);
INSERT INTO public.ducklake_schema_versions VALUES (11, 5, 1);
INSERT INTO public.ducklake_schema_versions VALUES (15, 7, 3);
INSERT INTO public.ducklake_schema_versions VALUES (16, 8, 3);
INSERT INTO public.ducklake_schema_versions VALUES (18, 9, 3);
INSERT INTO public.ducklake_schema_versions VALUES (19, 10, 5);
INSERT INTO public.ducklake_schema_versions VALUES (22, 12, 6);
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:02:35.134838+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:02:35.378481+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:02:35.388548+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:02:35.487348+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:02:35.496372+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:02:35.535318+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:02:35.545107+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:02:35.572451+00', 2, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:02:35.579249+00', 2, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:02:35.612537+00', 3, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:02:35.619992+00', 4, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:02:35.641644+00', 5, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:02:35.670707+00', 5, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:02:35.691878+00', 5, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:02:35.709563+00', 6, 3, 5);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:02:35.710882+00', 7, 4, 5);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:02:35.732385+00', 8, 5, 5);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:02:35.769863+00', 8, 5, 7);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:02:35.800765+00', 9, 5, 7);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:02:35.810581+00', 10, 6, 7);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:02:35.837479+00', 10, 6, 8);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:02:35.877218+00', 11, 6, 8);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:02:35.879415+00', 12, 7, 8);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:02:35.899501+00', 12, 7, 9);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:02:35.943251+00', 12, 7, 10);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:02:35.9645+00', 12, 7, 11);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:02:35.973798+00', 12, 7, 12);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:02:36.016208+00', 12, 7, 12);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:02:36.041033+00', 12, 7, 13);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:02:36.044153+00', 12, 7, 13);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:02:36.053574+00', 12, 7, 14);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:02:36.065603+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot_changes VALUES (0, 'created_schema:"main"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (1, 'created_table:"main"."t"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (2, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (3, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (4, 'inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (5, 'inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (6, 'inserted_into_table:1,inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (7, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (8, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (9, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (10, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (11, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (12, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (13, 'inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (14, 'created_schema:"other one"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (15, 'created_table:"other one"."p"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (16, 'altered_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (17, 'inserted_into_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (18, 'created_table:"other one"."q"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (19, 'created_table:"main"."gone"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (20, 'inlined_insert:5,inlined_delete:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (21, 'dropped_table:5', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (22, 'created_table:"main"."m"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (23, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (24, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (25, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (26, 'merge_adjacent:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'inlined_insert:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'deleted_from_table:6,inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'inlined_insert:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_table VALUES (1, '01a1fafb-99f3-724b-b778-0033e4dee8ab', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fafb-9b4d-7f84-bae7-10fcf491fe27', 15, 18, 2, 'p', 'p/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fafb-9b4d-7f84-bae7-10fcf491fe27', 18, NULL, 2, 'q', 'p/', true);
INSERT INTO public.ducklake_table VALUES (5, '01a1fafb-9bba-7808-9a09-2452551f2591', 19, 21, 0, 'gone', 'gone/', true);
INSERT INTO public.ducklake_table VALUES (6, '01a1fafb-9bf7-7df7-9da8-93c8ab8deea4', 22, NULL, 0, 'm', 'm/', true);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 3, true, NULL, '-inf', 'nan', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 1, true, NULL, '1', '5000000000', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 2, true, NULL, '', 'updated', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 4, true, NULL, '0044-03-15 (BC)', 'infinity', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 5, true, NULL, '-0.01', '20.20', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 6, true, NULL, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 7, true, NULL, '', 'xFF', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 9, true, NULL, '1', '20', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 1, false, NULL, 'k0', 'k1', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 2, false, NULL, '0', '11', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (5, 1, false, NULL, '1', '2', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 1, false, NULL, '1', '313', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 2, false, NULL, 'after', 'third', NULL);
INSERT INTO public.ducklake_table_stats VALUES (1, 27, 27, 2841);
INSERT INTO public.ducklake_table_stats VALUES (3, 12, 12, 763);
INSERT INTO public.ducklake_table_stats VALUES (5, 2, 2, 0);
INSERT INTO public.ducklake_table_stats VALUES (6, 41, 41, 1294);
ALTER TABLE ONLY public.ducklake_data_file
    ADD CONSTRAINT ducklake_data_file_pkey PRIMARY KEY (data_file_id);
ALTER TABLE ONLY public.ducklake_delete_file
    ADD CONSTRAINT ducklake_delete_file_pkey PRIMARY KEY (delete_file_id);
ALTER TABLE ONLY public.ducklake_schema
    ADD CONSTRAINT ducklake_schema_pkey PRIMARY KEY (schema_id);
ALTER TABLE ONLY public.ducklake_snapshot_changes
    ADD CONSTRAINT ducklake_snapshot_changes_pkey PRIMARY KEY (snapshot_id);
ALTER TABLE ONLY public.ducklake_snapshot
    ADD CONSTRAINT ducklake_snapshot_pkey PRIMARY KEY (snapshot_id);
