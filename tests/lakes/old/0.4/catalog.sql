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
INSERT INTO public.ducklake_data_file VALUES (0, 1, 2, NULL, NULL, 'ducklake-01a1fb0a-3a4d-7614-b800-3259233cd282.parquet', true, 'parquet', 20, 1602, 708, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (2, 1, 6, NULL, NULL, 'ducklake-01a1fb0a-3afa-7724-98dd-138349e98a3c.parquet', true, 'parquet', 2, 1239, 876, 23, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (5, 3, 17, NULL, NULL, 'k=k0/ducklake-01a1fb0a-3d11-7282-86e6-d3284ad14f29.parquet', true, 'parquet', 6, 381, 225, 0, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (6, 3, 17, NULL, NULL, 'k=k1/ducklake-01a1fb0a-3d11-7777-a77d-773e9da4cb83.parquet', true, 'parquet', 6, 382, 225, 6, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (14, 6, 23, NULL, NULL, 'ducklake-01a1fb0a-3e79-7e59-a623-7a25c2c196cb.parquet', true, 'parquet', 65, 987, 408, 0, NULL, NULL, NULL, 28);
INSERT INTO public.ducklake_delete_file VALUES (16, 6, 33, NULL, 14, 'ducklake-01a1fb0a-3faa-74bb-bd19-ff2ddcc5ea2d-delete.parquet', true, 'parquet', 62, 1127, 583, NULL, NULL);
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
INSERT INTO public.ducklake_file_column_stats VALUES (14, 6, 1, 292, 65, 0, '100', '510', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (14, 6, 2, 98, 65, 0, 'fifth', 'third', NULL, NULL);
INSERT INTO public.ducklake_file_partition_value VALUES (5, 3, 0, 'k0');
INSERT INTO public.ducklake_file_partition_value VALUES (6, 3, 0, 'k1');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (8, 'main/m/ducklake-01a1fb0a-3e1c-7b20-b450-abfc69e3aea1.parquet', true, '2026-11-20 22:18:34.934105+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (9, 'main/m/ducklake-01a1fb0a-3e26-7272-8bff-fa0b5f25d9d4.parquet', true, '2026-11-20 22:18:34.934105+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (10, 'main/m/ducklake-01a1fb0a-3e2f-7917-92e2-cb3e5002575e.parquet', true, '2026-11-20 22:18:34.934105+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (11, 'main/m/ducklake-01a1fb0a-3e3f-758c-a0b1-d13bc61cce23.parquet', true, '2026-11-20 22:18:34.987313+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (12, 'main/m/ducklake-01a1fb0a-3e5d-7c50-8228-61f287223d3a.parquet', true, '2026-11-20 22:18:34.987313+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (13, 'main/m/ducklake-01a1fb0a-3e64-7ef6-a6bd-5f406722f8dd.parquet', true, '2026-11-20 22:18:34.987313+00');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (22, 3, NULL, NULL, '\x', NULL, NULL, NULL, NULL, '\x', '[1]');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (20, 3, 5, 30, NULL, 'NaN', '0044-03-15 (BC)', NULL, NULL, '\x784646', '[]');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (21, 3, 6, 31, '\x69742773', 1e+300, 'infinity', -0.01, '9999-12-31 00:00:00', NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_2 VALUES (25, 8, 13, 40, '\x6c61746572', 1.5, NULL, 1.00, NULL, NULL, NULL, 7);
INSERT INTO public.ducklake_inlined_data_1_5 VALUES (26, 12, NULL, 5000000000, '\x72656e616d6564', NULL, NULL, NULL, NULL, NULL, 42);
INSERT INTO public.ducklake_inlined_data_5_10 VALUES (0, 20, NULL, 1);
INSERT INTO public.ducklake_inlined_data_5_10 VALUES (1, 20, NULL, 2);
INSERT INTO public.ducklake_inlined_data_6_12 VALUES (65, 31, 33, 1, '\x6166746572');
INSERT INTO public.ducklake_inlined_data_6_12 VALUES (66, 34, NULL, 2, '\x616761696e');
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
INSERT INTO public.ducklake_inlined_delete_6 VALUES (14, 13, 30);
INSERT INTO public.ducklake_inlined_delete_6 VALUES (14, 40, 30);
INSERT INTO public.ducklake_inlined_delete_6 VALUES (14, 26, 32);
INSERT INTO public.ducklake_metadata VALUES ('version', '0.4', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 7dbb2e646f', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.4/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_partition_column VALUES (4, 3, 0, 1, 'identity');
INSERT INTO public.ducklake_partition_info VALUES (4, 3, 16, NULL);
INSERT INTO public.ducklake_schema VALUES (0, 'ba76e3d5-f3bf-4b98-b60a-a73d97f1a2e4', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema VALUES (2, '01a1fb0a-3c79-7199-99a1-be0485b4e870', 14, NULL, 'other one', '01a1fb0a-3c79-7199-99a1-be0485b4e870/', true);
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
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:18:33.604238+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:18:33.881706+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:18:33.890158+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:18:33.977974+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:18:33.999053+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:18:34.057961+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:18:34.091179+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:18:34.138277+00', 2, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:18:34.143989+00', 2, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:18:34.173514+00', 3, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:18:34.188019+00', 4, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:18:34.296719+00', 5, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:18:34.341974+00', 5, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:18:34.399976+00', 5, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:18:34.488464+00', 6, 3, 5);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:18:34.490363+00', 7, 4, 5);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:18:34.536054+00', 8, 5, 5);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:18:34.622957+00', 8, 5, 7);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:18:34.676563+00', 9, 5, 7);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:18:34.680348+00', 10, 6, 7);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:18:34.715272+00', 10, 6, 8);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:18:34.807461+00', 11, 6, 8);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:18:34.810613+00', 12, 7, 8);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:18:34.887369+00', 12, 7, 9);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:18:34.917487+00', 12, 7, 10);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:18:34.926323+00', 12, 7, 11);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:18:34.934105+00', 12, 7, 12);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:18:34.972264+00', 12, 7, 13);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:18:34.97932+00', 12, 7, 14);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:18:34.987313+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:18:35.10086+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:18:35.247526+00', 12, 7, 16);
INSERT INTO public.ducklake_snapshot VALUES (32, '2026-11-20 22:18:35.253813+00', 12, 7, 16);
INSERT INTO public.ducklake_snapshot VALUES (33, '2026-11-20 22:18:35.284566+00', 12, 7, 17);
INSERT INTO public.ducklake_snapshot VALUES (34, '2026-11-20 22:18:35.314273+00', 12, 7, 18);
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
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'merge_adjacent:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'inlined_insert:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (32, 'inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (33, 'deleted_from_table:6,inlined_delete:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (34, 'inlined_insert:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_table VALUES (1, '01a1fb0a-3a1b-7aeb-92af-4f616caafcd5', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb0a-3c94-7715-8b7a-70647de1640c', 15, 18, 2, 'p', 'p/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb0a-3c94-7715-8b7a-70647de1640c', 18, NULL, 2, 'q', 'p/', true);
INSERT INTO public.ducklake_table VALUES (5, '01a1fb0a-3d59-790a-b391-d1815f0f55d9', 19, 21, 0, 'gone', 'gone/', true);
INSERT INTO public.ducklake_table VALUES (6, '01a1fb0a-3e05-78e2-a782-9394ebca8316', 22, NULL, 0, 'm', 'm/', true);
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
INSERT INTO public.ducklake_table_column_stats VALUES (6, 1, false, NULL, '1', '510', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 2, false, NULL, 'after', 'third', NULL);
INSERT INTO public.ducklake_table_stats VALUES (1, 27, 27, 2841);
INSERT INTO public.ducklake_table_stats VALUES (3, 12, 12, 763);
INSERT INTO public.ducklake_table_stats VALUES (5, 2, 2, 0);
INSERT INTO public.ducklake_table_stats VALUES (6, 67, 67, 2160);
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
