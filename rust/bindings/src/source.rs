//! Region sources of Python programs: names, host memory of a fixed size, and Python objects.

use std::sync::Arc;

use allotment::source::{Cap, Capped, Grant, RegionSource, ReserveError};
use allotment::{MAX_BYTES, Siblings};
use allotment_cuda::StreamOrder;
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::cuda::{self, Regions};
use crate::error::PythonError;
use crate::guests::opencl::{OpenClRegions, OpenClSharedMemory, OpenClSource};
use crate::size::size_argument;

/// The names of sources, for messages.
const NAMES: &str = "'host', 'address-space', 'cuda:0', 'cuda-vmm:0'";

/// Host memory of a fixed size that several pools can share.
///
/// Bytes that one pool has reserved, the others cannot reserve. Reserving takes address space only; the system adds
/// physical memory when a program writes to it.
///
/// Args:
///     capacity: The most bytes that pools may reserve from it together: a number, or a text such as ``"8GiB"``.
///     within_machine: Refuse arrays for which the machine has no memory left, and addresses when it has next to
///         none; otherwise the kernel ends a program that fills them. False by default. It has an effect where the
///         system tells how much memory there is: on Linux, also in control groups.
#[pyclass(frozen, module = "allotment")]
pub(crate) struct HostMemory {
    cap: Arc<Cap>,
    /// The pools over it.
    siblings: Arc<Siblings>,
    within_machine: bool,
}

#[pymethods]
impl HostMemory {
    #[new]
    #[pyo3(signature = (capacity, *, within_machine = false))]
    fn new(capacity: &Bound<'_, PyAny>, within_machine: bool) -> PyResult<Self> {
        let bytes = size_argument(capacity, "capacity")?;
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(PyValueError::new_err(format!(
                "capacity {bytes} is not between 1 and {MAX_BYTES} bytes"
            )));
        }
        Ok(Self { cap: Cap::new(bytes), siblings: Arc::default(), within_machine })
    }

    /// The most bytes that pools may reserve from it together.
    #[getter]
    fn capacity(&self) -> u64 {
        self.cap.bytes()
    }

    /// Whether its pools refuse requests for which the machine has no memory.
    #[getter]
    fn within_machine(&self) -> bool {
        self.within_machine
    }

    /// Bytes that all pools have reserved from it now.
    #[getter]
    fn used(&self) -> u64 {
        self.cap.used()
    }

    fn __repr__(&self) -> String {
        let within_machine = if self.within_machine { "True" } else { "False" };
        let (capacity, used) = (self.cap.bytes(), self.cap.used());
        format!("HostMemory(capacity={capacity}, used={used}, within_machine={within_machine})")
    }
}

/// The source that a `source=` argument selects.
pub(crate) struct ChosenSource {
    pub(crate) source: Box<dyn RegionSource>,
    /// Whether its addresses are memory of this process.
    pub(crate) is_host_memory: bool,
    /// Whether any thread may call it at any time, because it runs no Python code.
    pub(crate) any_thread: bool,
    /// The pools that share its memory.
    pub(crate) siblings: Option<Arc<Siblings>>,
    /// The order of the streams that share its memory, for memory of a CUDA device.
    pub(crate) streams: Option<Arc<StreamOrder>>,
    /// Whether the pool must not exceed the machine's memory.
    pub(crate) within_machine: bool,
    /// The buffers that are its regions, for memory of an OpenCL context.
    pub(crate) opencl: Option<OpenClRegions>,
}

/// Converts a `source=` argument: a name, or an object with `reserve` and `release`.
pub(crate) fn choose(value: &Bound<'_, PyAny>) -> PyResult<ChosenSource> {
    if let Ok(name) = value.cast::<PyString>() {
        return named(value.py(), name.to_str()?);
    }
    if let Ok(memory) = value.cast::<HostMemory>() {
        let HostMemory { cap, siblings, within_machine } = memory.get();
        let source = Capped::new(allotment_host::HostMemory::new(), Arc::clone(cap));
        return Ok(ChosenSource {
            source: Box::new(source),
            is_host_memory: true,
            any_thread: true,
            siblings: Some(Arc::clone(siblings)),
            streams: None,
            within_machine: *within_machine,
            opencl: None,
        });
    }
    if let Ok(memory) = value.cast::<OpenClSharedMemory>() {
        let memory = memory.get();
        return Ok(ChosenSource {
            source: Box::new(memory.source(value.py())?),
            is_host_memory: true,
            any_thread: true,
            siblings: Some(Arc::clone(memory.siblings())),
            streams: None,
            within_machine: memory.is_within_machine(),
            opencl: None,
        });
    }
    if let Ok(source) = value.cast::<OpenClSource>() {
        let (source, regions) = source.get().regions();
        return Ok(ChosenSource {
            source: Box::new(source),
            is_host_memory: false,
            any_thread: true,
            siblings: None,
            streams: None,
            within_machine: false,
            opencl: Some(regions),
        });
    }
    if let Ok(class) = value.cast::<PyType>() {
        let name = class.name()?;
        return Err(PyTypeError::new_err(format!(
            "source must be an object, not the class {name}: make one, {name}()"
        )));
    }
    for method in ["reserve", "release"] {
        if !value.getattr_opt(method)?.is_some_and(|attribute| attribute.is_callable()) {
            let kind = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "source must be {NAMES}, or an object with reserve and release; {kind} has no {method}"
            )));
        }
    }
    let joins_regions = match value.getattr_opt("joins_regions")? {
        Some(joins) => joins.is_truthy()?,
        None => false,
    };
    let object = value.clone().unbind();
    Ok(ChosenSource {
        source: Box::new(PythonSource { object, joins_regions }),
        is_host_memory: false,
        any_thread: false,
        siblings: None,
        streams: None,
        within_machine: false,
        opencl: None,
    })
}

/// Chooses a source by its name.
fn named(py: Python<'_>, name: &str) -> PyResult<ChosenSource> {
    let (source, is_host_memory, streams): (Box<dyn RegionSource>, _, _) = match name.split_once(':') {
        None if name == "host" => (Box::new(allotment_host::HostMemory::new()), true, None),
        None if name == "address-space" => (Box::new(allotment::source::AddressSpace::new(0)), false, None),
        Some((kind @ ("cuda" | "cuda-vmm"), index)) => {
            let regions = if kind == "cuda" { Regions::Plain } else { Regions::Mapped };
            let (source, streams) = cuda::source(py, index, regions)?;
            (source, false, Some(streams))
        }
        _ => {
            return Err(PyValueError::new_err(format!(
                "source {name:?} is not known: it is {NAMES}, or an object with reserve and release"
            )));
        }
    };
    Ok(ChosenSource {
        source,
        is_host_memory,
        any_thread: true,
        siblings: None,
        streams,
        within_machine: false,
        opencl: None,
    })
}

/// A Python object as a source, with its constant answer to `joins_regions`.
struct PythonSource {
    object: Py<PyAny>,
    joins_regions: bool,
}

impl RegionSource for PythonSource {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        // Without an interpreter there is no object to call.
        let answer = Python::try_attach(|py| {
            let answer = self.object.bind(py).call_method1("reserve", (bytes, alignment))?;
            if answer.is_none() { Ok(None) } else { read_grant(&answer).map(Some) }
        });
        match answer.unwrap_or(Ok(None)) {
            Ok(grant) => grant.ok_or(ReserveError::Declined),
            Err(error) => Err(ReserveError::Failed(PythonError::failure(error))),
        }
    }

    fn release(&mut self, region: Grant) {
        Python::try_attach(|py| {
            // A pool may be dropped while an exception is pending; Python code must neither see nor clear it.
            let pending = PyErr::take(py);
            let object = self.object.bind(py);
            match object.call_method1("release", (region.address, region.bytes)) {
                Ok(_) => {}
                // Ctrl-C is meant for the program, not for this call: it is raised again in the main thread.
                Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => interrupt_again(py),
                // The region is gone for the pool in any case, and there may be no caller to raise to.
                Err(error) => error.write_unraisable(py, Some(object)),
            }
            if let Some(pending) = pending {
                pending.restore(py);
            }
        });
    }

    fn joins_regions(&self) -> bool {
        self.joins_regions
    }
}

fn interrupt_again(py: Python<'_>) {
    if let Err(error) = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main")) {
        error.write_unraisable(py, None);
    }
}

fn read_grant(answer: &Bound<'_, PyAny>) -> PyResult<Grant> {
    let pair = answer.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let grant = pair.and_then(|pair| pair.extract::<(u64, u64)>().ok());
    let (address, bytes) = grant.ok_or_else(|| {
        let text = answer.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
        PyTypeError::new_err(format!(
            "reserve must return None or (address, nbytes), two whole numbers, not {text}"
        ))
    })?;
    Ok(Grant { address, bytes })
}
