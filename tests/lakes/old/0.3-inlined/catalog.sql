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
    parent_column bigint
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
    partial_file_info character varying,
    mapping_id bigint
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
    encryption_key character varying
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
    s character varying,
    n double precision,
    f double precision,
    d date,
    m numeric(9,2),
    ts timestamp without time zone,
    tz timestamp with time zone,
    c time without time zone,
    o boolean,
    u uuid,
    b bytea,
    j json,
    y smallint,
    l character varying,
    r character varying,
    p character varying
);
CREATE TABLE public.ducklake_inlined_data_1_2 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    s character varying,
    n double precision,
    f double precision,
    d date,
    m numeric(9,2),
    ts timestamp without time zone,
    tz timestamp with time zone,
    c time without time zone,
    o boolean,
    u uuid,
    b bytea,
    j json,
    y smallint,
    l character varying,
    r character varying,
    p character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_3 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    name character varying,
    n double precision,
    f double precision,
    d date,
    m numeric(9,2),
    ts timestamp without time zone,
    tz timestamp with time zone,
    c time without time zone,
    o boolean,
    u uuid,
    b bytea,
    j json,
    y smallint,
    l character varying,
    r character varying,
    p character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_4 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    name character varying,
    f double precision,
    d date,
    m numeric(9,2),
    ts timestamp without time zone,
    tz timestamp with time zone,
    c time without time zone,
    o boolean,
    u uuid,
    b bytea,
    j json,
    y smallint,
    l character varying,
    r character varying,
    p character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_1_5 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    i integer,
    name character varying,
    f double precision,
    d date,
    m numeric(9,2),
    ts timestamp without time zone,
    tz timestamp with time zone,
    c time without time zone,
    o boolean,
    u uuid,
    b bytea,
    j json,
    y integer,
    l character varying,
    r character varying,
    p character varying,
    x integer
);
CREATE TABLE public.ducklake_inlined_data_2_6 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    a integer,
    s character varying
);
CREATE TABLE public.ducklake_inlined_data_3_7 (
    row_id bigint,
    begin_snapshot bigint,
    end_snapshot bigint,
    a integer
);
CREATE TABLE public.ducklake_inlined_data_tables (
    table_id bigint,
    table_name character varying,
    schema_version bigint
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
    schema_version bigint
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
INSERT INTO public.ducklake_column VALUES (1, 1, NULL, 1, 1, 'i', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (4, 1, NULL, 1, 4, 'f', 'float32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (5, 1, NULL, 1, 5, 'd', 'date', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (6, 1, NULL, 1, 6, 'm', 'decimal(9,2)', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (7, 1, NULL, 1, 7, 'ts', 'timestamp', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (8, 1, NULL, 1, 8, 'tz', 'timestamptz', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (9, 1, NULL, 1, 9, 'c', 'time', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (10, 1, NULL, 1, 10, 'o', 'boolean', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (11, 1, NULL, 1, 11, 'u', 'uuid', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (12, 1, NULL, 1, 12, 'b', 'blob', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (13, 1, NULL, 1, 13, 'j', 'json', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (15, 1, NULL, 1, 15, 'l', 'list', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (16, 1, NULL, 1, 16, 'element', 'int32', NULL, NULL, true, 15);
INSERT INTO public.ducklake_column VALUES (17, 1, NULL, 1, 17, 'r', 'struct', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (18, 1, NULL, 1, 18, 'a', 'int32', NULL, NULL, true, 17);
INSERT INTO public.ducklake_column VALUES (19, 1, NULL, 1, 19, 'b', 'varchar', NULL, NULL, true, 17);
INSERT INTO public.ducklake_column VALUES (20, 1, NULL, 1, 20, 'p', 'map', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (21, 1, NULL, 1, 21, 'key', 'varchar', NULL, NULL, true, 20);
INSERT INTO public.ducklake_column VALUES (22, 1, NULL, 1, 22, 'value', 'int32', NULL, NULL, true, 20);
INSERT INTO public.ducklake_column VALUES (23, 10, NULL, 1, 23, 'x', 'int32', '42', '42', true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 1, 12, 1, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 12, NULL, 1, 2, 'name', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (3, 1, 13, 1, 3, 'n', 'float64', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (14, 1, 14, 1, 14, 'y', 'int8', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (14, 14, NULL, 1, 14, 'y', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 17, NULL, 2, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 17, NULL, 2, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 25, NULL, 3, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_data_file VALUES (4, 1, 6, NULL, NULL, 'ducklake-01a1fb09-fbcd-7011-8299-bd8847892811.parquet', true, 'parquet', 20, 1774, 1087, 7, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (7, 1, 9, NULL, NULL, 'ducklake-01a1fb09-fcbc-722c-87b9-ed27f041c790.parquet', true, 'parquet', 2, 2559, 1766, 27, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (14, 2, 18, NULL, NULL, 'ducklake-01a1fb09-fe3c-77e1-88cc-1084036d7ac2.parquet', true, 'parquet', 3, 662, 484, 4, NULL, NULL, 'partial_max:21', NULL);
INSERT INTO public.ducklake_data_file VALUES (22, 3, 26, NULL, NULL, 'ducklake-01a1fb09-ffae-7067-8849-ba06c56c3d1b.parquet', true, 'parquet', 28, 594, 309, 3, NULL, NULL, '26:3|29:15|30:28', NULL);
INSERT INTO public.ducklake_delete_file VALUES (5, 1, 7, 8, 4, 'ducklake-01a1fb09-fbfe-7f8b-a454-8a924f5a6b9b-delete.parquet', true, 'parquet', 1, 759, 595, NULL);
INSERT INTO public.ducklake_delete_file VALUES (6, 1, 8, 9, 4, 'ducklake-01a1fb09-fc36-7c90-9b5f-eeea3691357f-delete.parquet', true, 'parquet', 2, 775, 595, NULL);
INSERT INTO public.ducklake_delete_file VALUES (8, 1, 9, NULL, 4, 'ducklake-01a1fb09-fd45-7028-b9c1-c51978e5f49b-delete.parquet', true, 'parquet', 3, 781, 595, NULL);
INSERT INTO public.ducklake_delete_file VALUES (16, 2, 24, NULL, 14, 'ducklake-01a1fb09-ff29-796b-9c58-303fdf2a4ff2-delete.parquet', true, 'parquet', 1, 759, 595, NULL);
INSERT INTO public.ducklake_delete_file VALUES (23, 3, 32, NULL, 22, 'ducklake-01a1fb09-ffe4-76f9-878d-9e2a46b32219-delete.parquet', true, 'parquet', 3, 782, 595, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 1, 108, 20, 0, '100', '119', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 2, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 3, 124, 20, 0, '33.333333333333336', '39.666666666666664', false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 4, 25, 0, 20, NULL, NULL, false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 5, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 6, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 7, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 8, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 9, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 10, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 11, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 12, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 13, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 14, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 16, 0, 20, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 18, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 19, 25, 0, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 21, 0, 20, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (4, 1, 22, 0, 20, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 1, 33, 2, 0, '1', '103', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 2, 47, 2, 0, 'updated', 'updated', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 3, 41, 2, 0, '34.333333333333336', '34.333333333333336', true, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 4, 34, 1, 1, '0.1', '0.1', false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 5, 34, 1, 1, '0044-03-15 (BC)', '0044-03-15 (BC)', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 6, 34, 1, 1, '-0.01', '-0.01', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 7, 38, 1, 1, '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59.999999', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 8, 37, 1, 1, '2024-06-01 10:00:00+00', '2024-06-01 10:00:00+00', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 9, 38, 1, 1, '23:59:59.999999', '23:59:59.999999', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 10, 31, 1, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 11, 46, 1, 1, '01a1faf5-2a7f-768e-8a6b-262982a52114', '01a1faf5-2a7f-768e-8a6b-262982a52114', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 12, 37, 1, 1, '784646', '784646', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 13, 50, 1, 1, '{"k": [1, null]}', '{"k": [1, null]}', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 14, 34, 1, 1, '-128', '-128', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 16, 47, NULL, NULL, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 18, 35, 1, 1, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 19, 39, 1, 1, 'x, y', 'x, y', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 21, 44, NULL, NULL, 'k=1', 'k=1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (7, 1, 22, 41, NULL, NULL, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (14, 2, 1, 37, 3, 0, '1', '4', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (14, 2, 2, 40, 3, 0, 'a', 'd', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (22, 3, 1, 139, 28, 0, '1', '212', NULL, NULL);
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (19, 'main/g/ducklake-01a1fb09-ff64-793c-a662-2ba87665af7b.parquet', true, '2026-11-20 22:18:18.923203+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (20, 'main/g/ducklake-01a1fb09-ff7b-7e36-acd2-26aa3c11faf4.parquet', true, '2026-11-20 22:18:18.923203+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (21, 'main/g/ducklake-01a1fb09-ff9e-7792-adbe-fae7acea04f6.parquet', true, '2026-11-20 22:18:18.923203+00');
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (2, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (3, 4, NULL, 3, 'ünï', NULL, NULL, 'infinity', NULL, '-infinity', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (4, 4, NULL, 4, 'NULL', NULL, NULL, '-infinity', NULL, '1969-12-31 23:59:59.5', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[NULL]', NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (5, 5, NULL, 7, '0044-03-15 BC', NULL, NULL, '0001-12-31 BC', NULL, '0044-03-15 12:30:00.5 BC', '0044-03-15 12:30:00+00 BC', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (6, 5, NULL, 8, NULL, NULL, NULL, '10000-01-01', NULL, '12000-01-01 00:00:01', '2024-06-01 10:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (1, 3, 7, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_inlined_data_1_1 VALUES (0, 2, 9, 1, 'it''s', 'NaN', 0.1, '0044-03-15 BC', -0.01, '9999-12-31 23:59:59.999999', '2024-06-01 10:00:00+00', '23:59:59.999999', true, '01a1faf5-2a7f-768e-8a6b-262982a52114', '\x784646', '{"k": [1, null]}', -128, '[1, NULL]', '{''a'': 1, ''b'': ''x, ''''y''}', '{''k=1''=1}');
INSERT INTO public.ducklake_inlined_data_1_2 VALUES (29, 11, 16, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 7);
INSERT INTO public.ducklake_inlined_data_1_5 VALUES (30, 15, NULL, 6, 'renamed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1000, NULL, NULL, NULL, 42);
INSERT INTO public.ducklake_inlined_data_2_6 VALUES (7, 23, NULL, 5, 'e');
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_1', 1);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_2', 2);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_3', 3);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_4', 4);
INSERT INTO public.ducklake_inlined_data_tables VALUES (1, 'ducklake_inlined_data_1_5', 5);
INSERT INTO public.ducklake_inlined_data_tables VALUES (2, 'ducklake_inlined_data_2_6', 6);
INSERT INTO public.ducklake_inlined_data_tables VALUES (3, 'ducklake_inlined_data_3_7', 7);
INSERT INTO public.ducklake_metadata VALUES ('version', '0.3', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 6ddac802ff', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.3-inlined/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_schema VALUES (0, '58a35a3f-82a0-48dc-9490-d02e5d16f47d', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema_versions VALUES (0, 0);
INSERT INTO public.ducklake_schema_versions VALUES (1, 1);
INSERT INTO public.ducklake_schema_versions VALUES (10, 2);
INSERT INTO public.ducklake_schema_versions VALUES (12, 3);
INSERT INTO public.ducklake_schema_versions VALUES (13, 4);
INSERT INTO public.ducklake_schema_versions VALUES (14, 5);
INSERT INTO public.ducklake_schema_versions VALUES (17, 6);
INSERT INTO public.ducklake_schema_versions VALUES (25, 7);
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:18:17.667711+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:18:17.838773+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:18:17.841832+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:18:17.859492+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:18:17.883754+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:18:17.900537+00', 1, 2, 4);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:18:17.927224+00', 1, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:18:17.955+00', 1, 2, 6);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:18:18.004739+00', 1, 2, 7);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:18:18.044976+00', 1, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:18:18.320808+00', 2, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:18:18.326367+00', 2, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:18:18.364338+00', 3, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:18:18.372373+00', 4, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:18:18.393735+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:18:18.418291+00', 5, 2, 11);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:18:18.436111+00', 5, 2, 11);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:18:18.470345+00', 6, 3, 11);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:18:18.477606+00', 6, 3, 12);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:18:18.492217+00', 6, 3, 13);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:18:18.499276+00', 6, 3, 13);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:18:18.53233+00', 6, 3, 14);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:18:18.552445+00', 6, 3, 15);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:18:18.562012+00', 6, 3, 16);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:18:18.566021+00', 6, 3, 17);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:18:18.801227+00', 7, 4, 17);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:18:18.804488+00', 7, 4, 18);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:18:18.833309+00', 7, 4, 19);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:18:18.838911+00', 7, 4, 20);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:18:18.874014+00', 7, 4, 21);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:18:18.908633+00', 7, 4, 22);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:18:18.923203+00', 7, 4, 23);
INSERT INTO public.ducklake_snapshot VALUES (32, '2026-11-20 22:18:18.962749+00', 7, 4, 24);
INSERT INTO public.ducklake_snapshot_changes VALUES (0, 'created_schema:"main"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (1, 'created_table:"main"."t"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (2, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (3, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (4, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (5, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (6, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (7, 'deleted_from_table:1,inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (8, 'deleted_from_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (9, 'inserted_into_table:1,deleted_from_table:1,inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (10, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (11, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (12, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (13, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (14, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (15, 'inlined_insert:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (16, 'inlined_delete:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (17, 'created_table:"main"."f"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (18, 'inlined_insert:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (19, 'inlined_insert:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (20, 'inlined_delete:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (21, 'inlined_insert:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (22, 'flushed_inlined:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (23, 'inlined_insert:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (24, 'deleted_from_table:2', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (25, 'created_table:"main"."g"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (26, 'inlined_insert:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'inlined_insert:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'flushed_inlined:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'inserted_into_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'inserted_into_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'compacted_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (32, 'deleted_from_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_table VALUES (1, '01a1fb09-fb6f-7d3d-b6a1-4dc87a3b7bcd', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (2, '01a1fb09-fde7-7384-8799-b56ee47e5c19', 17, NULL, 0, 'f', 'f/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb09-ff32-7478-a179-72bf58e0da05', 25, NULL, 0, 'g', 'g/', true);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 3, true, NULL, '33.333333333333336', 'nan', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 1, true, NULL, '1', '119', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 2, true, NULL, '0044-03-15 BC', 'ünï', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 4, true, NULL, '0.1', '0.1', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 5, true, NULL, '-infinity', 'infinity', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 6, true, NULL, '-0.01', '-0.01', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 7, true, NULL, '-infinity', '9999-12-31 23:59:59.999999', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 8, true, NULL, '0044-03-15 (BC) 12:30:00+00', '2024-06-01 10:00:00+00', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 9, true, NULL, '23:59:59.999999', '23:59:59.999999', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 10, true, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 11, true, NULL, '01a1faf5-2a7f-768e-8a6b-262982a52114', '01a1faf5-2a7f-768e-8a6b-262982a52114', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 12, true, NULL, '784646', 'xFF', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 13, true, NULL, '{"k": [1, null]}', '{"k": [1, null]}', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 14, true, NULL, '-128', '1000', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 16, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 18, true, NULL, '1', '1', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 19, true, NULL, 'x, ''y', 'x, y', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 21, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 22, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (2, 1, false, NULL, '1', '5', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (2, 2, false, NULL, 'a', 'e', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 1, false, NULL, '1', '212', NULL);
INSERT INTO public.ducklake_table_stats VALUES (1, 31, 31, 4333);
INSERT INTO public.ducklake_table_stats VALUES (2, 8, 8, 662);
INSERT INTO public.ducklake_table_stats VALUES (3, 31, 31, 1035);
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
