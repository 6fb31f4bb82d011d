"""Element types of TensorFlow 2.21's operations, recorded by ``tests/differential/record_types.py``.

For each operation: its inputs as ``name:type``, where the type is an attribute or fixed, nothing if it is any, and ends
with ``*`` for a list; for each attribute the types that are allowed, in the order in which error texts list them
(nothing: all), and those that a CPU kernel exists for (nothing: those that are allowed).

Longer than 300 lines: a table, a line for each operation.
"""

from typing import Final

_0: Final = 'bfloat16 float16 float32 float64 int8 int16 int32 int64'
_1: Final = 'bfloat16 float16 float32 float64 int16 int32 int64 int8'
_2: Final = 'bfloat16 float16 float32 float64 complex64 complex128'
_3: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64 int8'
_4: Final = 'bfloat16 complex128 complex64 float16 float32 float64'
_5: Final = 'bfloat16 float16 float32 float64 uint8 int8 int16 int32 int64 complex64 complex128 string'
_6: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64 int8 string uint8'
_7: Final = 'float32 float64 int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 complex128 float16 uint32 uint64 variant'
_8: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8 variant'
_9: Final = 'bfloat16 float16 float32 float64 uint8 uint16 uint32 uint64 int8 int16 int32 int64 complex64 complex128'
_10: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8'
_11: Final = 'int32 int64'
_12: Final = 'complex64 complex128'
_13: Final = 'complex128 complex64'
_14: Final = 'float32 float64'
_15: Final = 'float32 float64 int32 uint8 int16 int8 int64 bfloat16 uint16 float16 uint32 uint64 qint8 quint8 qint32 qint16 quint16 bool'
_16: Final = 'bfloat16 bool float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8'
_17: Final = 'int16 int32 int64'
_18: Final = ''
_19: Final = 'int16 uint16 int32 int64'
_20: Final = 'int16 int32 int64 uint16'
_21: Final = 'float32 float64 int32 uint8 int16 int8 int64 bfloat16 uint16 float16 uint32 uint64 complex64 complex128 bool variant string'
_22: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 qint32 qint8 quint16 quint8 resource string uint16 uint32 uint64 uint8 variant'
_23: Final = 'float32 float64 int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 complex128 float16 uint32 uint64'
_24: Final = 'bfloat16 bool complex128 complex64 float16 float32 float4_e2m1fn float64 float8_e4m3fn float8_e5m2 int16 int2 int32 int4 int64 int8 qint32 qint8 quint8 resource string uint16 uint2 uint32 uint4 uint64 uint8 variant'
_25: Final = 'bfloat16 float16 float32 float64'
_26: Final = 'float16 bfloat16 float32 float64'
_27: Final = 'bfloat16 float16 float32 float64 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128'
_28: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int16 int32 int64'
_29: Final = 'bfloat16 float16 float32 float64 int64 int32 uint8 uint16 uint32 uint64 int8 int16 complex64 complex128 qint8 quint8 qint16 quint16 qint32'
_30: Final = 'int8 int16 int32 int64 uint8 uint16 uint32 uint64'
_31: Final = 'int16 int32 int64 int8 uint16 uint32 uint64 uint8'
_32: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 resource string uint16 uint32 uint64 uint8 variant'
_33: Final = 'float64 float32 float16 complex64 complex128'
_34: Final = 'complex128 complex64 float32 float64'
_35: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 string uint16 uint32 uint64 uint8'
_36: Final = 'complex64 complex128 variant'
_37: Final = 'complex128 complex64 variant'
_38: Final = 'float16 bfloat16 float32 float64 int32'
_39: Final = 'bfloat16 float16 float32 float64 int32'
_40: Final = 'float32 float64 int32 uint8 int16 int8 int64 bfloat16 uint16 float16 uint32 uint64'
_41: Final = 'bfloat16 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8'
_42: Final = 'int32 int64 float32 float64'
_43: Final = 'float16 float32 float64'
_44: Final = 'float16 float32 bfloat16 float64 complex64 complex128'
_45: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 resource string uint16 uint32 uint64 uint8 variant'
_46: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 qint32 qint8 quint8 string uint16 uint32 uint64 uint8 variant'
_47: Final = 'float32 float64 complex64 complex128'
_48: Final = 'bfloat16 complex128 complex64 float16 float32 float64 int32 int64'
_49: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 string uint16 uint32 uint64 uint8'
_50: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int4 int64 int8 qint16 qint32 qint8 quint16 quint8 resource string uint16 uint32 uint4 uint64 uint8 variant'
_51: Final = 'bfloat16 float16 float32 float64 uint8 int8 uint16 int16 int32 uint32 uint64 int64 complex64 complex128'
_52: Final = 'int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64'
_53: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 qint32 qint8 quint8 resource string uint16 uint32 uint64 uint8 variant'
_54: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 qint16 qint32 qint8 quint16 quint8 resource string uint16 uint32 uint64 uint8 variant'
_55: Final = 'float16 float32 float64 complex64 complex128'
_56: Final = 'bfloat16 float16 float32 float64 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128'
_57: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8'
_58: Final = 'complex128 complex64 float16 float32 float64'
_59: Final = 'bfloat16 float64 float32 float16 complex64 complex128'
_60: Final = 'float32 float64 int32 uint8 int16 int8 int64 bfloat16 uint16 float16 uint32 uint64 qint8 quint8 qint32 qint16 quint16'
_61: Final = 'float16 bfloat16 float32 float64 int32 int64 uint8 int16 int8 uint16 qint8'
_62: Final = 'bfloat16 float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64'
_63: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 qint32 qint8 quint8 string uint16 uint32 uint64 uint8'
_64: Final = 'bfloat16 float16 float32 float64 int8 int16 int32 int64 complex64 complex128'
_65: Final = 'float64 float32'
_66: Final = 'uint8 int8 int32 int64'
_67: Final = 'int32 int64 int8 uint8'
_68: Final = 'bfloat16 float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64 complex64 complex128 bool'
_69: Final = 'bfloat16 float32 float16 float64 int8 int16 int32 int64 complex64 complex128'
_70: Final = 'float16 float32 float64 int32 int64'
_71: Final = 'bfloat16 float16 float32 float64 int8 int16 int32 int64 uint16 uint32 uint64'
_72: Final = 'bfloat16 float16 float32 float64 int32 int64'
_73: Final = 'float32 float64 int32 uint8 int16 int8 int64 bfloat16 uint16 float16 uint32 uint64 qint8'
_74: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8'
_75: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8 variant'
_76: Final = 'uint8 int8 uint16 int16 int32 uint32 int64 uint64 bool bfloat16 float16 float32 float64 complex64 complex128 string'
_77: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int64 int8 qint32 qint8 quint8 string uint16 uint32 uint64 uint8'
_78: Final = 'bfloat16 bool complex128 complex64 float16 float32 float64 float8_e4m3fn float8_e5m2 int16 int32 int4 int64 int8 quint8 resource string uint16 uint32 uint4 uint64 uint8 variant'
_79: Final = 'int8 int32 int64'
_80: Final = 'int32 int64 int8'
_81: Final = 'bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128'
_82: Final = 'bfloat16 float16 float32 float64 int32 int64 complex64 complex128'
_83: Final = 'int32 int64 uint32 uint64'
_84: Final = 'float32 float64 int32 int64 uint32 uint64'
_85: Final = 'bfloat16 float16 float32 float64 uint8 int8 uint16 int16 int32 int64 complex64 complex128 uint32 uint64'
_86: Final = 'int32 int64 bfloat16 float16 float32 float64'
_87: Final = 'float32 float64 int32 int64'
_88: Final = 'bfloat16 bool float16 float32 float64 int16 int32 int64 int8 string uint16 uint32 uint64 uint8'
_89: Final = 'float32 float64 int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16 quint16 uint16 complex128 float16 uint32 uint64 bool'
_90: Final = 'float16 bfloat16 float32 float64 complex64 complex128'

#: By operation: its inputs, and by attribute what is allowed and what has a kernel.
KERNEL_TYPES: Final[dict[str, tuple[str, dict[str, tuple[str, str]]]]] = {
    'Abs': ('x:T', {'T': (_0, _1)}),
    'Acos': ('x:T', {'T': (_2, _3)}),
    'Acosh': ('x:T', {'T': (_2, _4)}),
    'Add': ('x:T y:T', {'T': (_5, _6)}),
    'AddN': ('inputs:T*', {'T': (_7, _8)}),
    'AddV2': ('x:T y:T', {'T': (_9, _10)}),
    'All': ('input:bool reduction_indices:Tidx', {'Tidx': (_11, _11)}),
    'Angle': ('input:T', {'T': (_12, _13), 'Tout': (_14, _14)}),
    'Any': ('input:bool reduction_indices:Tidx', {'Tidx': (_11, _11)}),
    'ArgMax': ('input:T dimension:Tidx', {'T': (_15, _16), 'Tidx': (_17, _18), 'output_type': (_19, _20)}),
    'ArgMin': ('input:T dimension:Tidx', {'T': (_15, _16), 'Tidx': (_11, _18), 'output_type': (_11, _11)}),
    'AsString': ('input:T', {'T': (_21, _18)}),
    'Asin': ('x:T', {'T': (_2, _4)}),
    'Asinh': ('x:T', {'T': (_2, _4)}),
    'Assert': ('condition:bool data:*', {}),
    'Assign': ('ref:T value:T', {'T': (_18, _22)}),
    'AssignAdd': ('ref:T value:T', {'T': (_23, _10)}),
    'AssignAddVariableOp': ('resource:resource value:dtype', {'dtype': (_18, _10)}),
    'AssignSub': ('ref:T value:T', {'T': (_23, _10)}),
    'AssignSubVariableOp': ('resource:resource value:dtype', {'dtype': (_18, _10)}),
    'AssignVariableOp': ('resource:resource value:dtype', {'dtype': (_18, _24)}),
    'Atan': ('x:T', {'T': (_2, _4)}),
    'Atan2': ('y:T x:T', {'T': (_25, _25)}),
    'Atanh': ('x:T', {'T': (_2, _4)}),
    'AvgPool': ('value:T', {'T': (_26, _25)}),
    'AvgPoolGrad': ('orig_input_shape:int32 grad:T', {'T': (_26, _25)}),
    'BatchMatMulV2': ('x:T y:T', {'T': (_27, _28)}),
    'BiasAdd': ('value:T bias:T', {'T': (_23, _10)}),
    'Bitcast': ('input:T', {'T': (_29, _18), 'type': (_29, _18)}),
    'BitwiseAnd': ('x:T y:T', {'T': (_30, _31)}),
    'BitwiseOr': ('x:T y:T', {'T': (_30, _31)}),
    'BitwiseXor': ('x:T y:T', {'T': (_30, _31)}),
    'BroadcastArgs': ('s0:T s1:T', {'T': (_11, _11)}),
    'BroadcastTo': ('input:T shape:Tidx', {'T': (_18, _32), 'Tidx': (_11, _18)}),
    'Cast': ('x:SrcT', {'SrcT': (_18, _18), 'DstT': (_18, _18)}),
    'Ceil': ('x:T', {'T': (_25, _25)}),
    'CheckNumerics': ('tensor:T', {'T': (_25, _25)}),
    'Cholesky': ('input:T', {'T': (_33, _34)}),
    'Complex': ('real:T imag:T', {'T': (_14, _14), 'Tout': (_12, _13)}),
    'ComplexAbs': ('x:T', {'T': (_12, _13), 'Tout': (_14, _18)}),
    'ConcatV2': ('values:T* axis:Tidx', {'T': (_18, _35), 'Tidx': (_11, _18)}),
    'Conj': ('input:T', {'T': (_36, _37)}),
    'ConjugateTranspose': ('x:T perm:Tperm', {'T': (_18, _32), 'Tperm': (_11, _18)}),
    'Const': ('', {'dtype': (_18, _18)}),
    'Conv2D': ('input:T filter:T', {'T': (_38, _39)}),
    'Conv2DBackpropFilter': ('input:T filter_sizes:int32 out_backprop:T', {'T': (_26, _25)}),
    'Conv2DBackpropInput': ('input_sizes:int32 filter:T out_backprop:T', {'T': (_38, _39)}),
    'Cos': ('x:T', {'T': (_2, _4)}),
    'Cosh': ('x:T', {'T': (_2, _4)}),
    'Cross': ('a:T b:T', {'T': (_40, _41)}),
    'Cumprod': ('x:T axis:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'Cumsum': ('x:T axis:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'CumulativeLogsumexp': ('x:T axis:Tidx', {'T': (_25, _25), 'Tidx': (_11, _11)}),
    'DenseBincount': ('input:Tidx size:Tidx weights:T', {'Tidx': (_11, _11), 'T': (_42, _10)}),
    'DepthwiseConv2dNative': ('input:T filter:T', {'T': (_26, _25)}),
    'DepthwiseConv2dNativeBackpropFilter': ('input:T filter_sizes:int32 out_backprop:T', {'T': (_26, _25)}),
    'DepthwiseConv2dNativeBackpropInput': ('input_sizes:int32 filter:T out_backprop:T', {'T': (_26, _25)}),
    'Digamma': ('x:T', {'T': (_25, _43)}),
    'DivNoNan': ('x:T y:T', {'T': (_44, _4)}),
    'DynamicPartition': ('data:T partitions:int32', {'T': (_18, _45)}),
    'DynamicStitch': ('indices:int32* data:T*', {'T': (_18, _46)}),
    'Eig': ('input:T', {'T': (_47, _34), 'Tout': (_12, _18)}),
    'Einsum': ('inputs:T*', {'T': (_18, _48)}),
    'Elu': ('features:T', {'T': (_26, _25)}),
    'EnsureShape': ('input:T', {'T': (_18, _18)}),
    'Equal': ('x:T y:T', {'T': (_18, _49)}),
    'Erf': ('x:T', {'T': (_25, _25)}),
    'Erfc': ('x:T', {'T': (_25, _25)}),
    'Erfinv': ('x:T', {'T': (_25, _14)}),
    'EuclideanNorm': ('input:T reduction_indices:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'Exp': ('x:T', {'T': (_2, _4)}),
    'ExpandDims': ('input:T dim:Tdim', {'T': (_18, _18), 'Tdim': (_11, _11)}),
    'Expm1': ('x:T', {'T': (_2, _4)}),
    'Fill': ('dims:index_type value:T', {'T': (_18, _50), 'index_type': (_11, _11)}),
    'Floor': ('x:T', {'T': (_25, _25)}),
    'FloorDiv': ('x:T y:T', {'T': (_51, _41)}),
    'FloorMod': ('x:T y:T', {'T': (_52, _41)}),
    'GatherNd': ('params:Tparams indices:Tindices', {'Tparams': (_18, _53), 'Tindices': (_17, _17)}),
    'GatherV2': ('params:Tparams indices:Tindices axis:Taxis', {'Tparams': (_18, _54), 'Tindices': (_17, _17), 'Taxis': (_11, _18)}),
    'Greater': ('x:T y:T', {'T': (_40, _41)}),
    'GreaterEqual': ('x:T y:T', {'T': (_40, _41)}),
    'HistogramFixedWidth': ('values:T value_range:T nbins:int32', {'T': (_42, _41), 'dtype': (_11, _11)}),
    'Identity': ('input:T', {'T': (_18, _18)}),
    'IdentityN': ('input:*', {}),
    'Imag': ('input:T', {'T': (_12, _13), 'Tout': (_14, _14)}),
    'InTopKV2': ('predictions:float32 targets:T k:T', {'T': (_11, _11)}),
    'Invert': ('x:T', {'T': (_30, _31)}),
    'InvertPermutation': ('x:T', {'T': (_11, _11)}),
    'IsFinite': ('x:T', {'T': (_25, _25)}),
    'IsInf': ('x:T', {'T': (_25, _25)}),
    'IsNan': ('x:T', {'T': (_25, _25)}),
    'L2Loss': ('t:T', {'T': (_26, _25)}),
    'LeakyRelu': ('features:T', {'T': (_26, _41)}),
    'LeakyReluGrad': ('gradients:T features:T', {'T': (_26, _41)}),
    'LeftShift': ('x:T y:T', {'T': (_30, _31)}),
    'Less': ('x:T y:T', {'T': (_40, _41)}),
    'LessEqual': ('x:T y:T', {'T': (_40, _41)}),
    'Lgamma': ('x:T', {'T': (_25, _43)}),
    'LinSpace': ('start:T stop:T num:Tidx', {'T': (_25, _14), 'Tidx': (_11, _11)}),
    'Log': ('x:T', {'T': (_2, _4)}),
    'Log1p': ('x:T', {'T': (_2, _4)}),
    'LogMatrixDeterminant': ('input:T', {'T': (_55, _34)}),
    'LogSoftmax': ('logits:T', {'T': (_26, _25)}),
    'LogicalAnd': ('x:bool y:bool', {}),
    'LogicalNot': ('x:bool', {}),
    'LogicalOr': ('x:bool y:bool', {}),
    'LowerBound': ('sorted_inputs:T values:T', {'T': (_18, _41), 'out_type': (_11, _11)}),
    'MatMul': ('a:T b:T', {'T': (_56, _28)}),
    'MatrixBandPart': ('input:T num_lower:Tindex num_upper:Tindex', {'T': (_18, _57), 'Tindex': (_11, _18)}),
    'MatrixDeterminant': ('input:T', {'T': (_55, _34)}),
    'MatrixDiagPartV3': ('input:T k:int32 padding_value:T', {'T': (_18, _57)}),
    'MatrixDiagV3': ('diagonal:T k:int32 num_rows:int32 num_cols:int32 padding_value:T', {'T': (_18, _57)}),
    'MatrixExponential': ('input:T', {'T': (_33, _34)}),
    'MatrixInverse': ('input:T', {'T': (_33, _58)}),
    'MatrixSetDiagV3': ('input:T diagonal:T k:int32', {'T': (_18, _57)}),
    'MatrixSolve': ('matrix:T rhs:T', {'T': (_33, _34)}),
    'MatrixSolveLs': ('matrix:T rhs:T l2_regularizer:float64', {'T': (_33, _34)}),
    'MatrixTriangularSolve': ('matrix:T rhs:T', {'T': (_59, _34)}),
    'Max': ('input:T reduction_indices:Tidx', {'T': (_60, _41), 'Tidx': (_11, _11)}),
    'MaxPool': ('input:T', {'T': (_61, _41)}),
    'MaxPoolGrad': ('orig_input:T orig_output:T grad:T', {'T': (_40, _41)}),
    'MaxPoolGradGrad': ('orig_input:T orig_output:T grad:T', {'T': (_40, _41)}),
    'Maximum': ('x:T y:T', {'T': (_62, _41)}),
    'Mean': ('input:T reduction_indices:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'Min': ('input:T reduction_indices:Tidx', {'T': (_60, _41), 'Tidx': (_11, _11)}),
    'Minimum': ('x:T y:T', {'T': (_62, _41)}),
    'MirrorPad': ('input:T paddings:Tpaddings', {'T': (_18, _63), 'Tpaddings': (_11, _11)}),
    'MirrorPadGrad': ('input:T paddings:Tpaddings', {'T': (_18, _10), 'Tpaddings': (_11, _11)}),
    'Mul': ('x:T y:T', {'T': (_51, _10)}),
    'MulNoNan': ('x:T y:T', {'T': (_2, _4)}),
    'Multinomial': ('logits:T num_samples:int32', {'T': (_40, _25), 'output_dtype': (_11, _11)}),
    'Ndtri': ('x:T', {'T': (_25, _14)}),
    'Neg': ('x:T', {'T': (_64, _3)}),
    'NextAfter': ('x1:T x2:T', {'T': (_65, _14)}),
    'NoOp': ('', {}),
    'NotEqual': ('x:T y:T', {'T': (_18, _49)}),
    'OneHot': ('indices:TI depth:int32 on_value:T off_value:T', {'T': (_18, _45), 'TI': (_66, _67)}),
    'OnesLike': ('x:T', {'T': (_68, _57)}),
    'Pack': ('values:T*', {'T': (_18, _54)}),
    'Pad': ('input:T paddings:Tpaddings', {'T': (_18, _63), 'Tpaddings': (_11, _11)}),
    'PadV2': ('input:T paddings:Tpaddings constant_values:T', {'T': (_18, _63), 'Tpaddings': (_11, _11)}),
    'Placeholder': ('', {'dtype': (_18, _18)}),
    'PlaceholderWithDefault': ('input:dtype', {'dtype': (_18, _18)}),
    'Polygamma': ('a:T x:T', {'T': (_14, _14)}),
    'Pow': ('x:T y:T', {'T': (_69, _3)}),
    'Print': ('input:T data:*', {'T': (_18, _18)}),
    'PrintV2': ('input:string', {}),
    'Prod': ('input:T reduction_indices:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'Qr': ('input:T', {'T': (_33, _58)}),
    'RandomGamma': ('shape:S alpha:T', {'S': (_11, _18), 'T': (_43, _25)}),
    'RandomGammaGrad': ('alpha:T sample:T', {'T': (_14, _14)}),
    'RandomPoissonV2': ('shape:S rate:R', {'S': (_11, _18), 'R': (_70, _70), 'dtype': (_70, _70)}),
    'RandomShuffle': ('value:T', {'T': (_18, _45)}),
    'RandomStandardNormal': ('shape:T', {'dtype': (_26, _25), 'T': (_11, _18)}),
    'RandomUniform': ('shape:T', {'dtype': (_26, _25), 'T': (_11, _18)}),
    'RandomUniformInt': ('shape:T minval:Tout maxval:Tout', {'Tout': (_11, _11), 'T': (_11, _18)}),
    'Range': ('start:Tidx limit:Tidx delta:Tidx', {'Tidx': (_71, _72)}),
    'Rank': ('input:T', {'T': (_18, _18)}),
    'ReadVariableOp': ('resource:resource', {'dtype': (_18, _18)}),
    'Real': ('input:T', {'T': (_12, _13), 'Tout': (_14, _14)}),
    'RealDiv': ('x:T y:T', {'T': (_51, _4)}),
    'Reciprocal': ('x:T', {'T': (_64, _4)}),
    'ReduceJoin': ('inputs:string reduction_indices:int32', {}),
    'Relu': ('features:T', {'T': (_73, _41)}),
    'Relu6': ('features:T', {'T': (_40, _41)}),
    'Relu6Grad': ('gradients:T features:T', {'T': (_40, _41)}),
    'ReluGrad': ('gradients:T features:T', {'T': (_40, _41)}),
    'Reshape': ('tensor:T shape:Tshape', {'T': (_18, _18), 'Tshape': (_11, _11)}),
    'ResourceApplyAdagradV2': ('var:resource accum:resource lr:T epsilon:T grad:T', {'T': (_23, _4)}),
    'ResourceApplyAdam': ('var:resource m:resource v:resource beta1_power:T beta2_power:T lr:T beta1:T beta2:T epsilon:T grad:T', {'T': (_23, _4)}),
    'ResourceApplyAdamWithAmsgrad': ('var:resource m:resource v:resource vhat:resource beta1_power:T beta2_power:T lr:T beta1:T beta2:T epsilon:T grad:T', {'T': (_23, _25)}),
    'ResourceApplyGradientDescent': ('var:resource alpha:T delta:T', {'T': (_23, _4)}),
    'ResourceApplyKerasMomentum': ('var:resource accum:resource lr:T grad:T momentum:T', {'T': (_23, _4)}),
    'ResourceApplyRMSProp': ('var:resource ms:resource mom:resource lr:T rho:T momentum:T epsilon:T grad:T', {'T': (_23, _4)}),
    'ResourceScatterAdd': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _10), 'Tindices': (_11, _11)}),
    'ResourceScatterDiv': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _10), 'Tindices': (_11, _11)}),
    'ResourceScatterMax': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _41), 'Tindices': (_11, _11)}),
    'ResourceScatterMin': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _41), 'Tindices': (_11, _11)}),
    'ResourceScatterMul': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _10), 'Tindices': (_11, _11)}),
    'ResourceScatterNdAdd': ('ref:resource indices:Tindices updates:T', {'T': (_18, _57), 'Tindices': (_11, _11)}),
    'ResourceScatterNdSub': ('ref:resource indices:Tindices updates:T', {'T': (_18, _57), 'Tindices': (_11, _11)}),
    'ResourceScatterNdUpdate': ('ref:resource indices:Tindices updates:T', {'T': (_18, _74), 'Tindices': (_11, _11)}),
    'ResourceScatterSub': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_23, _10), 'Tindices': (_11, _11)}),
    'ResourceScatterUpdate': ('resource:resource indices:Tindices updates:dtype', {'dtype': (_18, _75), 'Tindices': (_11, _11)}),
    'ResourceStridedSliceAssign': ('ref:resource begin:Index end:Index strides:Index value:T', {'T': (_18, _53), 'Index': (_11, _18)}),
    'ReverseSequence': ('input:T seq_lengths:Tlen', {'T': (_18, _74), 'Tlen': (_11, _11)}),
    'ReverseV2': ('tensor:T axis:Tidx', {'Tidx': (_11, _11), 'T': (_76, _74)}),
    'RightShift': ('x:T y:T', {'T': (_30, _31)}),
    'Rint': ('x:T', {'T': (_25, _14)}),
    'Roll': ('input:T shift:Tshift axis:Taxis', {'T': (_18, _45), 'Tshift': (_11, _11), 'Taxis': (_11, _11)}),
    'Round': ('x:T', {'T': (_64, _72)}),
    'Rsqrt': ('x:T', {'T': (_2, _4)}),
    'ScatterNd': ('indices:Tindices updates:T shape:Tindices', {'T': (_18, _74), 'Tindices': (_17, _11)}),
    'SegmentMax': ('data:T segment_ids:Tindices', {'T': (_40, _41), 'Tindices': (_11, _11)}),
    'SegmentMean': ('data:T segment_ids:Tindices', {'T': (_23, _10), 'Tindices': (_11, _11)}),
    'SegmentMin': ('data:T segment_ids:Tindices', {'T': (_40, _41), 'Tindices': (_11, _11)}),
    'SegmentProd': ('data:T segment_ids:Tindices', {'T': (_23, _10), 'Tindices': (_11, _11)}),
    'SegmentSum': ('data:T segment_ids:Tindices', {'T': (_23, _10), 'Tindices': (_11, _11)}),
    'SelectV2': ('condition:bool t:T e:T', {'T': (_18, _45)}),
    'SelfAdjointEigV2': ('input:T', {'T': (_33, _34)}),
    'Selu': ('features:T', {'T': (_26, _25)}),
    'Shape': ('input:T', {'T': (_18, _18), 'out_type': (_11, _11)}),
    'ShapeN': ('input:T*', {'T': (_18, _18), 'out_type': (_11, _11)}),
    'Sigmoid': ('x:T', {'T': (_2, _4)}),
    'Sign': ('x:T', {'T': (_64, _3)}),
    'Sin': ('x:T', {'T': (_2, _4)}),
    'Sinh': ('x:T', {'T': (_2, _4)}),
    'Size': ('input:T', {'T': (_18, _18), 'out_type': (_11, _11)}),
    'Slice': ('input:T begin:Index size:Index', {'T': (_18, _77), 'Index': (_11, _18)}),
    'Softmax': ('logits:T', {'T': (_26, _25)}),
    'SoftmaxCrossEntropyWithLogits': ('features:T labels:T', {'T': (_26, _25)}),
    'Softplus': ('features:T', {'T': (_26, _25)}),
    'Softsign': ('features:T', {'T': (_26, _25)}),
    'SparseSoftmaxCrossEntropyWithLogits': ('features:T labels:Tlabels', {'T': (_26, _25), 'Tlabels': (_11, _11)}),
    'Split': ('split_dim:int32 value:T', {'T': (_18, _78)}),
    'SplitV': ('value:T size_splits:Tlen split_dim:int32', {'T': (_18, _78), 'Tlen': (_79, _80)}),
    'Sqrt': ('x:T', {'T': (_2, _4)}),
    'Square': ('x:T', {'T': (_81, _10)}),
    'SquaredDifference': ('x:T y:T', {'T': (_82, _48)}),
    'Squeeze': ('input:T', {'T': (_18, _18)}),
    'StatelessMultinomial': ('logits:T num_samples:int32 seed:Tseed', {'T': (_40, _25), 'Tseed': (_11, _18), 'output_dtype': (_11, _11)}),
    'StatelessRandomGetKeyCounter': ('seed:Tseed', {'Tseed': (_11, _18)}),
    'StatelessRandomNormalV2': ('shape:Tshape key:uint64 counter:uint64 alg:int32', {'dtype': (_26, _25), 'Tshape': (_11, _18)}),
    'StatelessRandomUniformFullIntV2': ('shape:Tshape key:uint64 counter:uint64 alg:int32', {'dtype': (_83, _83), 'Tshape': (_11, _18)}),
    'StatelessRandomUniformIntV2': ('shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype', {'dtype': (_83, _11), 'Tshape': (_11, _18)}),
    'StatelessRandomUniformV2': ('shape:Tshape key:uint64 counter:uint64 alg:int32', {'dtype': (_26, _25), 'Tshape': (_11, _18)}),
    'StatelessTruncatedNormalV2': ('shape:Tshape key:uint64 counter:uint64 alg:int32', {'dtype': (_26, _25), 'Tshape': (_11, _18)}),
    'StopGradient': ('input:T', {'T': (_18, _18)}),
    'StridedSlice': ('input:T begin:Index end:Index strides:Index', {'T': (_18, _53), 'Index': (_17, _18)}),
    'StridedSliceGrad': ('shape:Index begin:Index end:Index strides:Index dy:T', {'T': (_18, _53), 'Index': (_11, _18)}),
    'StringFormat': ('inputs:*', {}),
    'StringJoin': ('inputs:string*', {}),
    'StringLength': ('input:string', {}),
    'StringLower': ('input:string', {}),
    'StringStrip': ('input:string', {}),
    'StringToNumber': ('string_tensor:string', {'out_type': (_84, _84)}),
    'StringUpper': ('input:string', {}),
    'Sub': ('x:T y:T', {'T': (_85, _10)}),
    'Substr': ('input:string pos:T len:T', {'T': (_11, _11)}),
    'Sum': ('input:T reduction_indices:Tidx', {'T': (_23, _10), 'Tidx': (_11, _11)}),
    'Svd': ('input:T', {'T': (_33, _34)}),
    'Tan': ('x:T', {'T': (_2, _4)}),
    'Tanh': ('x:T', {'T': (_2, _4)}),
    'TensorScatterAdd': ('tensor:T indices:Tindices updates:T', {'T': (_18, _10), 'Tindices': (_11, _11)}),
    'TensorScatterMax': ('tensor:T indices:Tindices updates:T', {'T': (_18, _41), 'Tindices': (_11, _11)}),
    'TensorScatterMin': ('tensor:T indices:Tindices updates:T', {'T': (_18, _41), 'Tindices': (_11, _11)}),
    'TensorScatterSub': ('tensor:T indices:Tindices updates:T', {'T': (_18, _10), 'Tindices': (_11, _11)}),
    'TensorScatterUpdate': ('tensor:T indices:Tindices updates:T', {'T': (_18, _74), 'Tindices': (_20, _11)}),
    'Tile': ('input:T multiples:Tmultiples', {'T': (_18, _18), 'Tmultiples': (_11, _11)}),
    'Timestamp': ('', {}),
    'TopKV2': ('input:T k:Tk', {'T': (_40, _41), 'Tk': (_17, _18), 'index_type': (_17, _17)}),
    'Transpose': ('x:T perm:Tperm', {'T': (_18, _32), 'Tperm': (_11, _18)}),
    'TruncateDiv': ('x:T y:T', {'T': (_51, _41)}),
    'TruncateMod': ('x:T y:T', {'T': (_86, _87)}),
    'TruncatedNormal': ('shape:T', {'dtype': (_26, _25), 'T': (_11, _18)}),
    'Unique': ('x:T', {'T': (_18, _88), 'out_idx': (_11, _11)}),
    'UniqueWithCounts': ('x:T', {'T': (_18, _88), 'out_idx': (_11, _11)}),
    'Unpack': ('value:T', {'T': (_18, _32)}),
    'UnravelIndex': ('indices:Tidx dims:Tidx', {'Tidx': (_11, _11)}),
    'UnsortedSegmentMax': ('data:T segment_ids:Tindices num_segments:Tnumsegments', {'T': (_40, _41), 'Tindices': (_11, _17), 'Tnumsegments': (_11, _18)}),
    'UnsortedSegmentMin': ('data:T segment_ids:Tindices num_segments:Tnumsegments', {'T': (_40, _41), 'Tindices': (_11, _17), 'Tnumsegments': (_11, _18)}),
    'UnsortedSegmentProd': ('data:T segment_ids:Tindices num_segments:Tnumsegments', {'T': (_23, _10), 'Tindices': (_11, _17), 'Tnumsegments': (_11, _18)}),
    'UnsortedSegmentSum': ('data:T segment_ids:Tindices num_segments:Tnumsegments', {'T': (_23, _10), 'Tindices': (_17, _17), 'Tnumsegments': (_11, _18)}),
    'UpperBound': ('sorted_inputs:T values:T', {'T': (_18, _41), 'out_type': (_11, _11)}),
    'VarHandleOp': ('', {'dtype': (_18, _18)}),
    'VarIsInitializedOp': ('resource:resource', {}),
    'VariableV2': ('', {'dtype': (_18, _18)}),
    'Where': ('input:T', {'T': (_89, _57)}),
    'Xdivy': ('x:T y:T', {'T': (_90, _4)}),
    'Xlog1py': ('x:T y:T', {'T': (_90, _4)}),
    'Xlogy': ('x:T y:T', {'T': (_90, _4)}),
    'ZerosLike': ('x:T', {'T': (_18, _75)}),
    'Zeta': ('x:T q:T', {'T': (_14, _14)}),
    '_EagerConst': ('input:T', {'T': (_18, _18)}),
}
