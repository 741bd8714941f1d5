"""The steps of `publish`, in this order: select_tables, missing_lists, plan_manifests,
build_manifests, write_lists, export_pointer.
"""
