"""Profiles of pprof, read by Google's protobuf with the fields of `proto/profile.proto` in google/pprof."""

import gzip
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields

#: Fields of each message: name, number, type (a message of the same file if not an integer or a text), repeated.
_MESSAGES: dict[str, list[tuple[str, int, str, bool]]] = {
    "ValueType": [("type", 1, "int64", False), ("unit", 2, "int64", False)],
    "Label": [("key", 1, "int64", False), ("str", 2, "int64", False), ("num", 3, "int64", False)],
    "Sample": [("location_id", 1, "uint64", True), ("value", 2, "int64", True), ("label", 3, "Label", True)],
    "Line": [("function_id", 1, "uint64", False), ("line", 2, "int64", False)],
    "Location": [
        ("id", 1, "uint64", False),
        ("mapping_id", 2, "uint64", False),
        ("address", 3, "uint64", False),
        ("line", 4, "Line", True),
    ],
    "Function": [
        ("id", 1, "uint64", False),
        ("name", 2, "int64", False),
        ("system_name", 3, "int64", False),
        ("filename", 4, "int64", False),
        ("start_line", 5, "int64", False),
    ],
    "Profile": [
        ("sample_type", 1, "ValueType", True),
        ("sample", 2, "Sample", True),
        ("location", 4, "Location", True),
        ("function", 5, "Function", True),
        ("string_table", 6, "string", True),
        ("time_nanos", 9, "int64", False),
        ("duration_nanos", 10, "int64", False),
        ("comment", 13, "int64", True),
        ("default_sample_type", 14, "int64", False),
    ],
}


def _profile_class() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="profiles", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            one = message.field.add(name=field, number=number)
            one.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in _MESSAGES:
                one.type, one.type_name = kinds.TYPE_MESSAGE, f".profiles.{kind}"
            else:
                one.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("profiles.Profile"))


def read_profile(path: Path) -> tuple[list[str], list[tuple[list[str], list[int], list[str]]]]:
    """Return the names of the values, and each sample's functions (innermost first), values and labels."""
    profile = _profile_class().FromString(gzip.decompress(path.read_bytes()))
    # Bytes of fields that the schema lacks would come back.
    assert not unknown_fields.UnknownFieldSet(profile)
    strings = profile.string_table
    assert strings[0] == ""
    assert strings[profile.default_sample_type] == "peak_space"
    functions = {one.id: strings[one.name] for one in profile.function}
    locations = {one.id: functions[one.line[0].function_id] for one in profile.location}
    names = [strings[one.type] for one in profile.sample_type]
    return names, [
        (
            [locations[number] for number in sample.location_id],
            list(sample.value),
            [strings[label.str] for label in sample.label],
        )
        for sample in profile.sample
    ]
