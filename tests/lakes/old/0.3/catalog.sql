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
INSERT INTO public.ducklake_data_file VALUES (0, 1, 2, NULL, NULL, 'ducklake-01a1fafb-5325-7953-a4b0-11b3497dce72.parquet', true, 'parquet', 20, 1574, 680, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (1, 1, 3, NULL, NULL, 'ducklake-01a1fafb-5330-7d43-9ea7-e309f51c4394.parquet', true, 'parquet', 3, 971, 649, 20, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (5, 1, 6, NULL, NULL, 'ducklake-01a1fafb-537e-7910-bbd7-26f24604de0a.parquet', true, 'parquet', 2, 1208, 845, 23, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (9, 1, 12, NULL, NULL, 'ducklake-01a1fafb-53b5-710f-9c81-d4974ed98198.parquet', true, 'parquet', 1, 822, 581, 26, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (8, 1, 8, 13, NULL, 'ducklake-01a1fafb-5393-72dc-a90b-3d22b0d01bd0.parquet', true, 'parquet', 1, 930, 658, 25, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (10, 3, 17, NULL, NULL, 'k=k0/ducklake-01a1fafb-53e9-71e2-8088-1001fa10175b.parquet', true, 'parquet', 6, 373, 217, 0, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (11, 3, 17, NULL, NULL, 'k=k1/ducklake-01a1fafb-53e9-7617-86d1-b5da9b214c07.parquet', true, 'parquet', 6, 374, 217, 6, 4, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (12, 5, 20, 21, NULL, 'ducklake-01a1fafb-5404-7165-94b9-13fa0b5c574b.parquet', true, 'parquet', 2, 193, 148, 0, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (17, 6, 23, 30, NULL, 'ducklake-01a1fafb-5444-7ff6-87b8-c4e2ddad1302.parquet', true, 'parquet', 39, 826, 392, 0, NULL, NULL, '23:12|24:25|25:39', NULL);
INSERT INTO public.ducklake_data_file VALUES (19, 6, 28, 30, NULL, 'ducklake-01a1fafb-5469-7837-8447-e7c6ec5c987a.parquet', true, 'parquet', 1, 293, 218, 39, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_data_file VALUES (21, 6, 31, NULL, NULL, 'ducklake-01a1fafb-5490-7258-b34b-16f2523a3a9b.parquet', true, 'parquet', 1, 293, 218, 40, NULL, NULL, NULL, NULL);
INSERT INTO public.ducklake_delete_file VALUES (2, 1, 4, 5, 0, 'ducklake-01a1fafb-5343-72b1-b4ee-e6c546581797-delete.parquet', true, 'parquet', 1, 719, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (3, 1, 5, 6, 1, 'ducklake-01a1fafb-5357-7ae9-80b4-dab02ea00c54-delete.parquet', true, 'parquet', 1, 719, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (4, 1, 5, 6, 0, 'ducklake-01a1fafb-5359-71d6-9ff9-25741f4128a3-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (6, 1, 6, NULL, 1, 'ducklake-01a1fafb-5380-766d-bfbc-9bbc607173cc-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (7, 1, 6, NULL, 0, 'ducklake-01a1fafb-5382-7bce-8cab-49615394d125-delete.parquet', true, 'parquet', 3, 742, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (13, 3, 20, NULL, 11, 'ducklake-01a1fafb-5415-7588-b513-15d9e2d30891-delete.parquet', true, 'parquet', 1, 895, 711, NULL);
INSERT INTO public.ducklake_delete_file VALUES (18, 6, 27, 29, 17, 'ducklake-01a1fafb-5464-777d-8b49-09dbf30ab46e-delete.parquet', true, 'parquet', 1, 719, 563, NULL);
INSERT INTO public.ducklake_delete_file VALUES (20, 6, 29, NULL, 17, 'ducklake-01a1fafb-547f-7ae8-8c72-f6f3ccf8dc13-delete.parquet', true, 'parquet', 2, 734, 563, NULL);
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
INSERT INTO public.ducklake_file_column_stats VALUES (17, 6, 1, 185, 39, 0, '100', '313', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (17, 6, 2, 75, 39, 0, 'first', 'third', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (19, 6, 1, 29, 1, 0, '1', '1', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (19, 6, 2, 34, 1, 0, 'after', 'after', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (21, 6, 1, 29, 1, 0, '2', '2', NULL, NULL);
INSERT INTO public.ducklake_file_column_stats VALUES (21, 6, 2, 34, 1, 0, 'again', 'again', NULL, NULL);
INSERT INTO public.ducklake_file_partition_value VALUES (10, 3, 0, 'k0');
INSERT INTO public.ducklake_file_partition_value VALUES (11, 3, 0, 'k1');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (14, 'main/m/ducklake-01a1fafb-542c-74cb-85da-85219009781a.parquet', true, '2026-11-20 22:02:17.534656+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (15, 'main/m/ducklake-01a1fafb-5433-7ab4-a210-ed96d16bc034.parquet', true, '2026-11-20 22:02:17.534656+00');
INSERT INTO public.ducklake_files_scheduled_for_deletion VALUES (16, 'main/m/ducklake-01a1fafb-5439-7dfe-9a4c-155bed6b4aeb.parquet', true, '2026-11-20 22:02:17.534656+00');
INSERT INTO public.ducklake_metadata VALUES ('version', '0.3', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('created_by', 'DuckDB 6ddac802ff', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('data_path', 's3://lakes/old-0.3/', NULL, NULL);
INSERT INTO public.ducklake_metadata VALUES ('encrypted', 'false', NULL, NULL);
INSERT INTO public.ducklake_partition_column VALUES (4, 3, 0, 1, 'identity');
INSERT INTO public.ducklake_partition_info VALUES (4, 3, 16, NULL);
INSERT INTO public.ducklake_schema VALUES (0, '996a620b-d4b8-4329-ab6a-cb0660b898d3', 0, NULL, 'main', 'main/', true);
INSERT INTO public.ducklake_schema VALUES (2, '01a1fafb-53c7-751e-915a-6b3cf97b54e1', 14, NULL, 'other one', '01a1fafb-53c7-751e-915a-6b3cf97b54e1/', true);
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
INSERT INTO public.ducklake_snapshot VALUES (0, '2026-11-20 22:02:17.108615+00', 0, 1, 0);
INSERT INTO public.ducklake_snapshot VALUES (1, '2026-11-20 22:02:17.237682+00', 1, 2, 0);
INSERT INTO public.ducklake_snapshot VALUES (2, '2026-11-20 22:02:17.240486+00', 1, 2, 1);
INSERT INTO public.ducklake_snapshot VALUES (3, '2026-11-20 22:02:17.263146+00', 1, 2, 2);
INSERT INTO public.ducklake_snapshot VALUES (4, '2026-11-20 22:02:17.271865+00', 1, 2, 3);
INSERT INTO public.ducklake_snapshot VALUES (5, '2026-11-20 22:02:17.288449+00', 1, 2, 5);
INSERT INTO public.ducklake_snapshot VALUES (6, '2026-11-20 22:02:17.309415+00', 1, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (7, '2026-11-20 22:02:17.351169+00', 2, 2, 8);
INSERT INTO public.ducklake_snapshot VALUES (8, '2026-11-20 22:02:17.353593+00', 2, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (9, '2026-11-20 22:02:17.369281+00', 3, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (10, '2026-11-20 22:02:17.370865+00', 4, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (11, '2026-11-20 22:02:17.380288+00', 5, 2, 9);
INSERT INTO public.ducklake_snapshot VALUES (12, '2026-11-20 22:02:17.389031+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (13, '2026-11-20 22:02:17.403983+00', 5, 2, 10);
INSERT INTO public.ducklake_snapshot VALUES (14, '2026-11-20 22:02:17.415031+00', 6, 3, 10);
INSERT INTO public.ducklake_snapshot VALUES (15, '2026-11-20 22:02:17.416542+00', 7, 4, 10);
INSERT INTO public.ducklake_snapshot VALUES (16, '2026-11-20 22:02:17.425714+00', 8, 5, 10);
INSERT INTO public.ducklake_snapshot VALUES (17, '2026-11-20 22:02:17.440661+00', 8, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (18, '2026-11-20 22:02:17.457526+00', 9, 5, 12);
INSERT INTO public.ducklake_snapshot VALUES (19, '2026-11-20 22:02:17.459135+00', 10, 6, 12);
INSERT INTO public.ducklake_snapshot VALUES (20, '2026-11-20 22:02:17.468869+00', 10, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (21, '2026-11-20 22:02:17.49753+00', 11, 6, 14);
INSERT INTO public.ducklake_snapshot VALUES (22, '2026-11-20 22:02:17.49926+00', 12, 7, 14);
INSERT INTO public.ducklake_snapshot VALUES (23, '2026-11-20 22:02:17.508473+00', 12, 7, 15);
INSERT INTO public.ducklake_snapshot VALUES (24, '2026-11-20 22:02:17.522157+00', 12, 7, 16);
INSERT INTO public.ducklake_snapshot VALUES (25, '2026-11-20 22:02:17.528576+00', 12, 7, 17);
INSERT INTO public.ducklake_snapshot VALUES (26, '2026-11-20 22:02:17.534656+00', 12, 7, 18);
INSERT INTO public.ducklake_snapshot VALUES (27, '2026-11-20 22:02:17.562049+00', 12, 7, 19);
INSERT INTO public.ducklake_snapshot VALUES (28, '2026-11-20 22:02:17.576676+00', 12, 7, 20);
INSERT INTO public.ducklake_snapshot VALUES (29, '2026-11-20 22:02:17.583154+00', 12, 7, 21);
INSERT INTO public.ducklake_snapshot VALUES (30, '2026-11-20 22:02:17.604064+00', 12, 7, 21);
INSERT INTO public.ducklake_snapshot VALUES (31, '2026-11-20 22:02:17.61568+00', 12, 7, 22);
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
INSERT INTO public.ducklake_snapshot_changes VALUES (27, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (28, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (29, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (30, 'deleted_from_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_snapshot_changes VALUES (31, 'inserted_into_table:6', NULL, NULL, NULL);
INSERT INTO public.ducklake_table VALUES (1, '01a1fafb-5316-716b-b988-808eb23870ba', 1, NULL, 0, 't', 't/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fafb-53d0-7ac9-8550-3b6913222330', 15, 18, 2, 'p', 'p/', true);
INSERT INTO public.ducklake_table VALUES (3, '01a1fafb-53d0-7ac9-8550-3b6913222330', 18, NULL, 2, 'q', 'p/', true);
INSERT INTO public.ducklake_table VALUES (5, '01a1fafb-53fb-7870-9c01-26d440f2aedb', 19, 21, 0, 'gone', 'gone/', true);
INSERT INTO public.ducklake_table VALUES (6, '01a1fafb-5423-755d-a799-c9c1ab2b1ada', 22, NULL, 0, 'm', 'm/', true);
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
INSERT INTO public.ducklake_table_column_stats VALUES (6, 1, false, NULL, '1', '313', NULL);
INSERT INTO public.ducklake_table_column_stats VALUES (6, 2, false, NULL, 'after', 'third', NULL);
INSERT INTO public.ducklake_table_stats VALUES (1, 27, 27, 5505);
INSERT INTO public.ducklake_table_stats VALUES (3, 12, 12, 747);
INSERT INTO public.ducklake_table_stats VALUES (5, 2, 2, 193);
INSERT INTO public.ducklake_table_stats VALUES (6, 41, 41, 1856);
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
