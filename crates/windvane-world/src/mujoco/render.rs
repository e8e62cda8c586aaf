//! Pictures of ants, off-screen (feature `render`; Mesa's EGL is enough, no display and no graphics card).

use super::ant::AntModel;
use crate::error::WorldError;
use mujoco_rs::renderer::{MjRenderer, png};
use mujoco_rs::wrappers::{MjData, MjModel, MjvCamera};
use std::time::Duration;

/// A camera that follows an ant.
pub struct Camera {
    renderer: MjRenderer,
    data: MjData<Box<MjModel>>,
    size: [u16; 2],
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Width and height, in pixels.
    pub size: [u16; 2],
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

/// Largest width and height: what MuJoCo reserves off-screen.
const LARGEST: [u16; 2] = [640, 480];

impl Camera {
    /// A camera for pictures of `size` pixels, up to 640 x 480.
    pub fn new(model: &AntModel, size: [u16; 2]) -> Result<Self, WorldError> {
        let [width, height] = size;
        if width == 0 || height == 0 || width > LARGEST[0] || height > LARGEST[1] {
            return Err(WorldError::Invalid(format!(
                "pictures of {width} x {height} pixels, expected 1 x 1 to {} x {}",
                LARGEST[0], LARGEST[1]
            )));
        }
        let mut model = MjModel::clone(&model.model().shared());
        // Shadows and smoothing cost most of a picture's time without a graphics card.
        model.vis_mut().quality.shadowsize = 0;
        model.vis_mut().quality.offsamples = 0;
        let mut camera = MjvCamera::new_tracking(1);
        camera.distance = 4.5;
        camera.elevation = -30.0;
        camera.azimuth = 60.0;
        let renderer = MjRenderer::builder().width(width.into()).height(height.into()).camera(camera);
        let renderer = renderer.build(&model).map_err(|error| {
            WorldError::Invalid(format!("no pictures here: {error} (Debian: libegl1 and libegl-mesa0)"))
        })?;
        let data = MjData::try_new(Box::new(model))
            .map_err(|error| WorldError::Invalid(format!("no memory for pictures: {error}")))?;
        Ok(Self { renderer, data, size })
    }

    /// A picture of the ant at `positions` ([`super::Ant::positions`]).
    ///
    /// # Panics
    /// If they are not as many as an ant has.
    pub fn shoot(&mut self, positions: &[f64]) -> Result<Frame, WorldError> {
        self.data.qpos_mut().copy_from_slice(positions);
        self.data.forward();
        let fail = |error| WorldError::Invalid(format!("drawing the ant: {error}"));
        self.renderer.sync_data(&mut self.data).map_err(fail)?;
        self.renderer.render().map_err(fail)?;
        Ok(Frame { size: self.size, rgb: self.renderer.rgb_flat().unwrap_or_default().to_vec() })
    }
}

impl Frame {
    /// The picture as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, WorldError> {
        let fail = |error: png::EncodingError| WorldError::Invalid(format!("writing a PNG: {error}"));
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.size[0].into(), self.size[1].into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(fail)?;
        writer.write_image_data(&self.rgb).map_err(fail)?;
        writer.finish().map_err(fail)?;
        Ok(bytes)
    }
}

/// An animation as a GIF file that repeats for ever, with `pause` between its frames.
pub fn gif(frames: &[Frame], pause: Duration) -> Result<Vec<u8>, WorldError> {
    let fail = |error: gif::EncodingError| WorldError::Invalid(format!("writing a GIF: {error}"));
    let Some(first) = frames.first() else {
        return Err(WorldError::Invalid("an animation without frames".into()));
    };
    let [width, height] = first.size;
    let mut bytes = Vec::new();
    let mut encoder = gif::Encoder::new(&mut bytes, width, height, &[]).map_err(fail)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(fail)?;
    for frame in frames {
        if frame.size != first.size {
            return Err(WorldError::Invalid("an animation whose frames differ in size".into()));
        }
        let mut picture = gif::Frame::from_rgb_speed(width, height, &frame.rgb, 10);
        // In hundredths of a second.
        picture.delay = (pause.as_millis() / 10).min(u16::MAX.into()) as u16;
        encoder.write_frame(&picture).map_err(fail)?;
    }
    drop(encoder);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mujoco::{Air, Ant, Integrator, MOTORS};

    #[test]
    fn a_walk_becomes_pictures_and_an_animation() {
        let model = AntModel::load().unwrap();
        let mut camera = match Camera::new(&model, [160, 120]) {
            Ok(camera) => camera,
            Err(error) => {
                #[allow(clippy::print_stderr)]
                {
                    eprintln!("SKIPPED a_walk_becomes_pictures_and_an_animation: {error}");
                }
                return;
            }
        };
        let mut ant = Ant::new(&model, Air::STILL, Integrator::RungeKutta).unwrap();
        let frames: Vec<Frame> = (0..4)
            .map(|number| {
                // To and fro, so that no two frames show the same.
                let torque = if number % 2 == 0 { 1.0 } else { -1.0 };
                (0..5).for_each(|_| {
                    ant.step([torque; MOTORS]).unwrap();
                });
                camera.shoot(ant.positions()).unwrap()
            })
            .collect();
        assert!(frames.windows(2).all(|pair| pair[0] != pair[1]), "it moves");
        let colours: std::collections::BTreeSet<&[u8]> = frames[0].rgb.chunks_exact(3).collect();
        assert!(frames[0].rgb.len() == 3 * 160 * 120 && colours.len() > 20, "{} colours", colours.len());
        assert_eq!(camera.shoot(ant.positions()).unwrap(), frames[3], "the same again");
        assert!(frames[0].png().unwrap().starts_with(b"\x89PNG"));
        assert!(gif(&frames, Duration::from_millis(50)).unwrap().starts_with(b"GIF89a"));
        assert!(gif(&[], Duration::ZERO).unwrap_err().to_string().contains("without frames"));
        let error = Camera::new(&model, [641, 480]).err().unwrap().to_string();
        assert!(error.contains("expected 1 x 1 to 640 x 480"), "{error}");
    }
}
