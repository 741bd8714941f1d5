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
INSERT INTO public.ducklake_column VALUES (4, 1, NULL, 1, 4, 'd', 'date', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (5, 1, NULL, 1, 5, 'm', 'decimal(9,2)', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (6, 1, NULL, 1, 6, 'ts', 'timestamp', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (7, 1, NULL, 1, 7, 'b', 'blob', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (8, 1, NULL, 1, 8, 'l', 'list', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (9, 1, NULL, 1, 9, 'element', 'int32', NULL, NULL, true, 8);
INSERT INTO public.ducklake_column VALUES (10, 7, NULL, 1, 10, 'x', 'int32', '42', '42', true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 1, 9, 1, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 9, NULL, 1, 2, 'name', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (3, 1, 10, 1, 3, 'n', 'float64', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 1, 11, 1, 1, 'i', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 11, NULL, 1, 1, 'i', 'int64', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 15, NULL, 3, 1, 'k', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 15, NULL, 3, 2, 'v', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 19, 21, 5, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (1, 22, NULL, 6, 1, 'a', 'int32', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_column VALUES (2, 22, NULL, 6, 2, 's', 'varchar', NULL, NULL, true, NULL);
INSERT INTO public.ducklake_data_file VALUES (0, 1, 2, NULL, NULL, 'ducklake-01a1fb09-ce1a-7d87-a853-8eb504022ca9.parquet', true, 'parquet', 20, 1574, 680, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (1, 1, 3, NULL, NULL, 'ducklake-01a1fb09-ce23-7020-a135-1552081bd53a.parquet', true, 'parquet', 3, 971, 649, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (5, 1, 6, NULL, NULL, 'ducklake-01a1fb09-cedd-712f-8f3d-6d29e452c077.parquet', true, 'parquet', 2, 1208, 845, 23, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (9, 1, 12, NULL, NULL, 'ducklake-01a1fb09-cf76-7410-bb26-704f60fdb28a.parquet', true, 'parquet', 1, 822, 581, 26, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (8, 1, 8, 13, NULL, 'ducklake-01a1fb09-cf1a-7a2f-8c47-b74c6a94cbeb.parquet', true, 'parquet', 1, 930, 658, 25, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (10, 3, 17, NULL, NULL, 'k=k0/ducklake-01a1fb09-cfde-7273-91c9-8411299daabd.parquet', true, 'parquet', 6, 373, 217, 0, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (11, 3, 17, NULL, NULL, 'k=k1/ducklake-01a1fb09-cfde-7205-b9ea-767285debae4.parquet', true, 'parquet', 6, 374, 217, 6, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (12, 5, 20, 21, NULL, 'ducklake-01a1fb09-d01c-7939-a275-0d31fdd01771.parquet', true, 'parquet', 2, 193, 148, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (20, 6, 23, 33, NULL, 'ducklake-01a1fb09-d0ea-79c7-9246-f3e329443b1d.parquet', true, 'parquet', 65, 976, 397, 0, NULL, NULL, '23:12|24:25|25:39|27:54|28:65', NULL);
INSERT INTO public.ducklake_data_file VALUES (22, 6, 31, 33, NULL, 'ducklake-01a1fb09-d161-70a7-b531-86ab2d99a3ad.parquet', true, 'parquet', 1, 293, 218, 65, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (24, 6, 34, NULL, NULL, 'ducklake-01a1fb09-d195-7007-96e2-bb6bb3555a3c.parquet', true, 'parquet', 1, 293, 218, 66, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_delete_file VALUES (2, 1, 4, 5, 0, 'ducklake-01a1fb09-ce48-7f29-aac9-94a23c5c906d-delete.parquet', true, 'parquet', 1, 719, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (3, 1, 5, 6, 1, 'ducklake-01a1fb09-ce6a-7d0d-917d-074494793824-delete.parquet', true, 'parquet', 1, 719, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (4, 1, 5, 6, 0, 'ducklake-01a1fb09-ce75-70ea-ac0d-0cec113446ce-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (6, 1, 6, NULL, 1, 'ducklake-01a1fb09-cef4-72d6-8e8b-7b1d153adf39-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (7, 1, 6, NULL, 0, 'ducklake-01a1fb09-cefa-7300-9e11-b1250cfdf06b-delete.parquet', true, 'parquet', 3, 742, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (13, 3, 20, NULL, 11, 'ducklake-01a1fb09-d03b-7105-9543-14fdce4f7b62-delete.parquet', true, 'parquet', 1, 895, 711, NULL);
INSERT INTO public.ducklake_delete_file VALUES (21, 6, 30, 32, 20, 'ducklake-01a1fb09-d15a-7e6c-914e-900f136e8c36-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (23, 6, 32, NULL, 20, 'ducklake-01a1fb09-d175-7331-8b05-b728b4a8f171-delete.parquet', true, 'parquet', 3, 742, 563, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 1, 107, 20, 0, '1', '20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 2, 118, 20, 0, 's1', 's9', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 3, 117, 20, 0, '-inf', '4.5', true, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 4, 108, 20, 0, '2024-01-02', '2024-01-21', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 5, 108, 20, 0, '1.01', '20.20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 6, 51, 20, 0, '2024-01-01 00:00:00.123456', '2024-01-01 00:00:00.123456', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 7, 48, 20, 0, '62', '62', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (0, 1, 9, 131, NULL, NULL, '1', '20', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 1, 38, 2, 1, '30', '31', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 2, 42, 2, 1, '', 'it''s', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 3, 40, 2, 1, '1e+300', '1e+300', true, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 4, 38, 2, 1, '0044-03-15 (BC)', 'infinity', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 5, 34, 1, 2, '-0.01', '-0.01', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 6, 36, 1, 2, '9999-12-31 00:00:00', '9999-12-31 00:00:00', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 7, 41, 2, 1, '', '784646', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (1, 1, 9, 41, NULL, NULL, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 1, 33, 2, 0, '7', '31', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 2, 47, 2, 0, 'updated', 'updated', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 3, 41, 2, 0, '1.75', '1e+300', false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 4, 33, 2, 0, '2024-01-08', 'infinity', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 5, 33, 2, 0, '-0.01', '7.07', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 6, 41, 2, 0, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 7, 35, 1, 1, '62', '62', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (5, 1, 9, 47, NULL, NULL, '7', '7', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 1, 29, 1, 0, '40', '40', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 2, 34, 1, 0, 'later', 'later', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 3, 33, 1, 0, '1.5', '1.5', false, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 4, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 5, 29, 1, 0, '1.00', '1.00', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 6, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 7, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 9, 0, 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (8, 1, 10, 29, 1, 0, '7', '7', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 1, 33, 1, 0, '5000000000', '5000000000', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 2, 36, 1, 0, 'renamed', 'renamed', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 4, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 5, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 6, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 7, 25, 0, 1, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 9, 0, 1, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (9, 1, 10, 29, 1, 0, '42', '42', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (10, 3, 1, 49, 6, 0, 'k0', 'k0', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (10, 3, 2, 48, 6, 0, '0', '10', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (11, 3, 1, 49, 6, 0, 'k1', 'k1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (11, 3, 2, 49, 6, 0, '1', '11', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (12, 5, 1, 33, 2, 0, '1', '2', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (20, 6, 1, 292, 65, 0, '100', '510', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (20, 6, 2, 98, 65, 0, 'fifth', 'third', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (22, 6, 1, 29, 1, 0, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (22, 6, 2, 34, 1, 0, 'after', 'after', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (24, 6, 1, 29, 1, 0, '2', '2', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (24, 6, 2, 34, 1, 0, 'again', 'again', NULL, NULL);
INSERT INTO public.ducklake_file_partition_value VALUES (10, 3, 0, 'k0');
INSERT INTO public.ducklake_file_partition_value VALUES (11, 3, 0, 'k1');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (14, 'main/m/ducklake-01a1fb09-d077-75a8-9d47-0d05a00a11e7.parquet', true, '2026-11-20 22:18:06.873938+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (15, 'main/m/ducklake-01a1fb09-d084-7d6b-9b53-46c90fb4379e.parquet', true, '2026-11-20 22:18:06.873938+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (16, 'main/m/ducklake-01a1fb09-d08c-75cc-a288-dc52457ccd1e.parquet', true, '2026-11-20 22:18:06.873938+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (17, 'main/m/ducklake-01a1fb09-d0a9-7d6a-be13-786249f25a34.parquet', true, '2026-11-20 22:18:06.945912+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (18, 'main/m/ducklake-01a1fb09-d0d2-769d-8934-c7c277c7c3ea.parquet', true, '2026-11-20 22:18:06.945912+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (19, 'main/m/ducklake-01a1fb09-d0da-7e08-8f43-adc342edd5c0.parquet', true, '2026-11-20 22:18:06.945912+00');
INSERT INTO public.ducklake_metadata VALUES ('version', '0.3', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 6ddac802ff', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.3/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_partition_column VALUES (4, 3, 0, 1, 'identity');
INSERT INTO public.ducklake_partition_info VALUES (4, 3, 16, NULL);
INSERT INTO public.ducklake_schema VALUES (0, '3074026b-1196-4a7b-8d97-958b2636c7fe', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema VALUES (2, '01a1fb09-cfa0-7d51-9267-6754c7ab28f3', 14, NULL, 'other one', '01a1fb09-cfa0-7d51-9267-6754c7ab28f3/', true);
INSERT INTO public.ducklake_schema_versions VALUES (0, 0);
INSERT INTO public.ducklake_schema_versions VALUES (1, 1);
INSERT INTO public.ducklake_schema_versions VALUES (7, 2);
INSERT INTO public.ducklake_schema_versions VALUES (9, 3);
INSERT INTO public.ducklake_schema_versions VALUES (10, 4);
INSERT INTO public.ducklake_schema_versions VALUES (11, 5);
INSERT INTO public.ducklake_schema_versions VALUES (14, 6);
INSERT INTO public.ducklake_schema_versions VALUES (15, 7);
INSERT INTO public.ducklake_schema_versions VALUES (16, 8);
INSERT INTO public.ducklake_schema_versions VALUES (18, 9);
INSERT INTO public.ducklake_schema_versions VALUES (19, 10);
INSERT INTO public.ducklake_schema_versions VALUES (21, 11);
INSERT INTO public.ducklake_schema_versions VALUES (22, 12);
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:18:05.861127+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:18:06.192005+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:18:06.198405+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:18:06.242583+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:18:06.257081+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:18:06.285542+00', 1, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:18:06.352569+00', 1, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:18:06.46634+00', 2, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:18:06.469841+00', 2, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:18:06.498717+00', 3, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:18:06.50162+00', 4, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:18:06.5486+00', 5, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:18:06.565629+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:18:06.590767+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:18:06.622461+00', 6, 3, 10);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:18:06.626367+00', 7, 4, 10);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:18:06.640752+00', 8, 5, 10);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:18:06.671003+00', 8, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:18:06.698919+00', 9, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:18:06.706061+00', 10, 6, 12);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:18:06.726045+00', 10, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:18:06.793046+00', 11, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:18:06.796298+00', 12, 7, 14);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:18:06.818349+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:18:06.850992+00', 12, 7, 16);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:18:06.859589+00', 12, 7, 17);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:18:06.873938+00', 12, 7, 18);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:18:06.928656+00', 12, 7, 19);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:18:06.937643+00', 12, 7, 20);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:18:06.945912+00', 12, 7, 21);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:18:07.040553+00', 12, 7, 22);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:18:07.072115+00', 12, 7, 23);
INSERT INTO public.ducklake_snapshot VALUES (32, '2026-11-20 22:18:07.079156+00', 12, 7, 24);
INSERT INTO public.ducklake_snapshot VALUES (33, '2026-11-20 22:18:07.102542+00', 12, 7, 24);
INSERT INTO public.ducklake_snapshot VALUES (34, '2026-11-20 22:18:07.124629+00', 12, 7, 25);
INSERT INTO public.ducklake_snapshot_changes VALUES (0, 'created_schema:"main"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (1, 'created_table:"main"."t"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (2, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (3, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (4, 'deleted_from_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (5, 'deleted_from_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (6, 'inserted_into_table:1,deleted_from_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (7, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (8, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (9, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (10, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (11, 'altered_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (12, 'inserted_into_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (13, 'deleted_from_table:1', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (14, 'created_schema:"other one"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (15, 'created_table:"other one"."p"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (16, 'altered_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (17, 'inserted_into_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (18, 'created_table:"other one"."q"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (19, 'created_table:"main"."gone"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (20, 'inserted_into_table:5,deleted_from_table:3', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (21, 'dropped_table:5', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (22, 'created_table:"main"."m"', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (23, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (24, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (25, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (26, 'compacted_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'compacted_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (32, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (33, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (34, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_table VALUES (1, '01a1fb09-cdf4-7824-bbc8-b54e757eac5d', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb09-cfaf-7e2e-9725-af602f7f0086', 15, 18, 2, 'p', 'p/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fb09-cfaf-7e2e-9725-af602f7f0086', 18, NULL, 2, 'q', 'p/', true);
INSERT INTO public.ducklake_table VALUES (5, '01a1fb09-d004-743f-8844-36eb22282b25', 19, 21, 0, 'gone', 'gone/', true);
INSERT INTO public.ducklake_table VALUES (6, '01a1fb09-d061-7f65-ae2a-96503c49a357', 22, NULL, 0, 'm', 'm/', true);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 3, true, true, '-inf', '1e+300', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 1, true, NULL, '1', '5000000000', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 2, true, NULL, '', 'updated', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 4, true, NULL, '0044-03-15 (BC)', 'infinity', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 5, true, NULL, '-0.01', '20.20', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 6, true, NULL, '2024-01-01 00:00:00.123456', '9999-12-31 00:00:00', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 7, true, NULL, '', '784646', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (1, 9, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 1, false, NULL, 'k0', 'k1', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (3, 2, false, NULL, '0', '11', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (5, 1, false, NULL, '1', '2', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 1, false, NULL, '1', '510', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 2, false, NULL, 'after', 'third', NULL);
INSERT INTO public.ducklake_table_stats VALUES (1, 27, 27, 5505);
INSERT INTO public.ducklake_table_stats VALUES (3, 12, 12, 747);
INSERT INTO public.ducklake_table_stats VALUES (5, 2, 2, 193);
INSERT INTO public.ducklake_table_stats VALUES (6, 67, 67, 2706);
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
