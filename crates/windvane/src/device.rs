//! Where tensors live, as a run-time choice that is checked before anything is built on it, and how many threads a run
//! may use.

use crate::nn::{self, NnError, read, upload};
pub use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a driver may take over a first small product before it counts as hanging. Software drivers compile their
/// shaders for seconds.
const PROBE_LIMIT: Duration = Duration::from_mins(1);

/// More threads than any machine this runs on has: a larger number is a slip.
const MAX_THREADS: usize = 1024;

/// The instruction set that the kernels of the processor use: `avx512`, `avx2` or `baseline`.
pub fn instructions() -> &'static str {
    nn::instructions()
}

/// A kind of device, as the command line spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceName {
    /// The processor, with kernels of our own; always there.
    #[default]
    Cpu,
    /// A GPU through Vulkan (feature `vulkan`).
    Vulkan,
    /// A GPU through whatever interface `wgpu` finds (feature `wgpu`).
    Wgpu,
    /// An NVIDIA GPU (feature `cuda`).
    Cuda,
    /// An Apple GPU (feature `metal`).
    Metal,
}

impl DeviceName {
    /// Every name there is.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::Vulkan, Self::Wgpu, Self::Cuda, Self::Metal];

    /// The device, after it has computed a small product right within a time limit.
    pub fn open(self) -> Result<Device, NnError> {
        let Some(make) = self.maker() else {
            return Err(self.fault(format!("not compiled in; build with `--features {self}`")));
        };
        match self {
            Self::Cpu => nn::check_instructions().map(|()| make()),
            Self::Vulkan | Self::Wgpu | Self::Cuda | Self::Metal => {
                probe(make, PROBE_LIMIT).map_err(|problem| self.fault(problem))
            }
        }
    }

    /// Whether its feature is compiled in.
    pub fn is_compiled_in(self) -> bool {
        self.maker().is_some()
    }

    /// How to make the device, where its feature is compiled in.
    fn maker(self) -> Option<fn() -> Device> {
        match self {
            Self::Cpu => Some(Device::flex),
            #[cfg(feature = "vulkan")]
            Self::Vulkan => Some(|| Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "wgpu")]
            Self::Wgpu => Some(|| Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(feature = "cuda")]
            Self::Cuda => Some(|| Device::cuda(0)),
            #[cfg(feature = "metal")]
            Self::Metal => Some(|| Device::metal(burn::tensor::DeviceKind::DefaultDevice)),
            #[cfg(not(all(feature = "vulkan", feature = "wgpu", feature = "cuda", feature = "metal")))]
            _ => None,
        }
    }

    fn fault(self, problem: String) -> NnError {
        NnError::Device { device: self.to_string(), problem }
    }
}

/// Makes a device on a thread of its own and lets it compute: a missing driver panics or hangs there, not here.
fn probe(make: impl FnOnce() -> Device + Send + 'static, limit: Duration) -> Result<Device, String> {
    let (send, answer) = mpsc::channel();
    // The thread of a hanging driver cannot be ended from outside; it ends with the process.
    thread::spawn(move || {
        let device = make();
        let x = upload(vec![1.0, 2.0, 3.0, 4.0], [2, 2], &device);
        let right = read(x.clone().matmul(x)) == [7.0, 10.0, 15.0, 22.0];
        // Nobody listens any more once the time limit has passed.
        let _ = send.send((device, right));
    });
    match answer.recv_timeout(limit) {
        Ok((device, true)) => Ok(device),
        Ok((_, false)) => Err("computes wrong products; its driver is not usable".to_owned()),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("no answer from its driver within {} s; is a driver installed?", limit.as_secs()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err("not usable here: no such device, or its driver failed (its own words are above)".to_owned())
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Vulkan => "vulkan",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
        })
    }
}

impl FromStr for DeviceName {
    type Err = NnError;

    fn from_str(name: &str) -> Result<Self, NnError> {
        Self::ALL.into_iter().find(|device| device.to_string() == name).ok_or_else(|| NnError::Device {
            device: name.to_owned(),
            problem: format!("unknown; known: {}", Self::ALL.map(|device| device.to_string()).join(", ")),
        })
    }
}

/// The threads one run computes with: a pool of its own, so that runs side by side do not share one.
#[derive(Debug)]
pub struct Threads(rayon::ThreadPool);

impl Threads {
    /// A pool of `count` threads. From then on the process keeps memory that is freed for the next training step.
    pub fn new(count: usize) -> Result<Self, NnError> {
        if !(1..=MAX_THREADS).contains(&count) {
            let expected = format!("1 to {MAX_THREADS}");
            return Err(NnError::Size { what: "threads".to_owned(), size: count, expected });
        }
        nn::keep_freed_memory();
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .thread_name(|i| format!("windvane-{i}"))
            .build();
        pool.map(Self).map_err(|e| NnError::Setting(format!("{count} threads cannot be started: {e}")))
    }

    /// Runs `work` with these threads; results do not depend on their number.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}

#[cfg(test)]
mod tests {
    use super::{DeviceName, Threads, probe};
    use burn::tensor::Device;
    use std::time::Duration;

    #[test]
    fn the_cpu_is_always_there() {
        assert_eq!(DeviceName::Cpu.open().unwrap(), Device::flex());
    }

    #[test]
    fn names_read_back_and_an_unknown_one_lists_the_known() {
        for device in DeviceName::ALL {
            assert_eq!(device.to_string().parse::<DeviceName>().unwrap(), device);
        }
        let error = "gpu".parse::<DeviceName>().unwrap_err().to_string();
        assert_eq!(error, "device \"gpu\": unknown; known: cpu, vulkan, wgpu, cuda, metal");
    }

    #[test]
    #[cfg(not(feature = "cuda"))]
    fn a_device_not_compiled_in_names_its_feature() {
        let error = DeviceName::Cuda.open().unwrap_err().to_string();
        assert_eq!(error, "device \"cuda\": not compiled in; build with `--features cuda`");
    }

    #[test]
    fn a_hanging_driver_and_a_failing_one_are_errors_in_time() {
        let hang = || {
            std::thread::sleep(Duration::from_secs(5));
            Device::flex()
        };
        assert!(probe(hang, Duration::from_millis(50)).unwrap_err().contains("no answer from its driver"));
        let fail = || panic!("this panic is the failing driver of the test");
        assert!(probe(fail, Duration::from_secs(5)).unwrap_err().contains("not usable here"));
        assert_eq!(probe(Device::flex, Duration::from_secs(5)).unwrap(), Device::flex());
    }

    #[test]
    fn zero_and_absurd_thread_counts_are_refused() {
        assert!(Threads::new(0).is_err());
        assert!(Threads::new(1_000_000).is_err());
        assert_eq!(Threads::new(2).unwrap().run(rayon::current_num_threads), 2);
    }
}
