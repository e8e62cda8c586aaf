//! `windvane adapt`: an agent, a context, a task; actions back.

mod prompt;
mod serve;

use crate::choice::{BeliefChoice, PlannerChoice, TaskPolicyChoice};
use crate::output;
use clap::{Args, ValueEnum};
use prompt::PromptArgs;
use serde::Serialize;
use std::path::{Path, PathBuf};
use windvane::Agent;
use windvane::agent::task::Inference;
use windvane::agent::{Confidence, Session};
use windvane::device::Threads;
use windvane_world::ActionBuf;
use windvane_world::episodes::{read_observations, read_trajectories};

/// Adapts a trained agent to the dynamics of a context and to a task, without any learning.
///
/// The task is a goal, labelled states or a formula over the names of the observation, or several of them; "W @" before
/// one gives it a weight. Without --observations and --serve it tells what the agent makes of context and task. With
/// --serve it answers lines of JSON on stdin: {"obs": [..]} is answered by {"action": ..}; {"reset": true, "obs": [..]} begins an
/// episode; "took" beside "obs" says what was done instead of the last answer, "values": true asks for Q of each action; {"task": {"parts": [..]}} changes the task.
#[derive(Args)]
#[command(after_help = "Examples:
  windvane adapt models/cart --context monday.npz --reward \"(abs(angle) < 0.1) * (abs(x) < 1)\"
  windvane adapt models/cart --context monday.npz --goal 0,0,0,0 --observations states.npz --out actions.json
  windvane adapt models/cart --context monday.npz --goal \"1 @ 0,0,0,0\" --labels \"-0.5 @ bad.csv\" --save-task careful
  windvane adapt models/cart --context monday.npz --task careful --belief online --serve")]
pub(crate) struct Adapt {
    /// The agent's folder (`windvane export` makes it), or a finished run's
    #[arg(value_name = "AGENT")]
    agent: PathBuf,
    /// What was seen of the dynamics: .npz files, Minari folders or data sets; none: the agent knows nothing of them
    #[arg(long, value_name = "FILE")]
    context: Vec<PathBuf>,
    #[command(flatten)]
    prompt: PromptArgs,
    /// How the task vector is made: projection (paper), or least-squares on the rewards
    #[arg(long, value_enum, default_value_t = By::Projection)]
    inference: By,
    /// Whether the belief goes on learning while it serves
    #[arg(long, value_enum, default_value_t = BeliefChoice::Frozen)]
    belief: BeliefChoice,
    /// Who chooses actions: F alone, or value iteration on the predictor's dynamics
    #[arg(long, value_enum, default_value_t = PlannerChoice::None)]
    planner: PlannerChoice,
    /// How the task becomes actions by F alone: greedy on its own vector z (paper), or generalised policy improvement
    #[arg(long, value_enum, default_value_t = TaskPolicyChoice::Greedy)]
    task_policy: TaskPolicyChoice,
    /// An .npz file with `observations`: answers one action for each
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    observations: Option<PathBuf>,
    /// Where the answer goes instead of stdout, as JSON
    #[arg(long, value_name = "FILE", requires = "observations")]
    out: Option<PathBuf>,
    /// Answer observations on stdin until it ends
    #[arg(long)]
    serve: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Projection,
    LeastSquares,
}

/// What the agent makes of context and task.
#[derive(Serialize)]
struct Ready<'a> {
    env: &'a str,
    method: &'a str,
    confidence: &'a Confidence,
    warning: Option<String>,
    inference: Inference,
    /// How much of a formula's variation B can express.
    fit: Option<f64>,
    /// What is likely a mistake in the task.
    task_warnings: &'a [String],
    z: &'a [f32],
}

impl Adapt {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        Threads::new(1)?.run(|| self.adapt())
    }

    fn adapt(&self) -> anyhow::Result<()> {
        let agent = Agent::load(&self.agent)?;
        let mut context = Vec::new();
        for path in &self.context {
            context.extend(read_trajectories(path, agent.spec())?);
        }
        let adapted = agent.adapt(&context)?;
        let confidence = adapted.confidence();
        if let Some(warning) = confidence.warning() {
            output::note(&format!("warning: {warning}"));
        }
        let prompt = self.prompt.read(&self.agent, agent.spec())?;
        let inference = match self.inference {
            By::Projection => Inference::Projection,
            By::LeastSquares => Inference::LeastSquares,
        };
        let session = adapted.task_by(&prompt, inference)?;
        let session = if self.belief == BeliefChoice::Online { session.online() } else { session };
        let mut session = session.by(self.planner.into(), self.task_policy.into());
        self.prompt.save(&self.agent, &prompt)?;
        let code = session.code().clone();
        code.warnings.iter().for_each(|warning| output::note(&format!("warning: {warning}")));
        let ready = Ready {
            env: &agent.spec().name,
            method: agent.method().name,
            warning: confidence.warning(),
            confidence: &confidence,
            inference: code.inference,
            fit: code.fit,
            task_warnings: &code.warnings,
            z: &code.z,
        };
        if self.serve {
            return serve::serve(session, agent.spec(), &ready);
        }
        if let Some(path) = &self.observations {
            return answer(&mut session, path, &agent, self.out.as_deref());
        }
        if self.json {
            return output::json(&ready);
        }
        output::say(&summary(&ready));
        Ok(())
    }
}

/// The actions for a file of observations.
fn answer(session: &mut Session, path: &Path, agent: &Agent, out: Option<&Path>) -> anyhow::Result<()> {
    let rows = read_observations(path, agent.spec())?;
    let mut actions = Vec::new();
    for obs in rows.chunks_exact(agent.spec().obs_dim()) {
        session.restart();
        actions.push(serve::action(&session.act(obs)?));
    }
    let document = serde_json::json!({ "actions": actions });
    match out {
        Some(out) => Ok(std::fs::write(out, serde_json::to_string(&document)?)
            .map_err(|error| anyhow::anyhow!("{}: {error}", out.display()))?),
        None => output::json(&document),
    }
}

/// What is ready, for people.
fn summary(ready: &Ready<'_>) -> String {
    let Ready { confidence, inference, fit, .. } = ready;
    let mut lines = vec![format!("{} on {}", ready.method, ready.env)];
    lines.push(match confidence.transitions {
        0 => "context: none; the belief is the average of the training data".to_owned(),
        count => format!("context: {count} transitions"),
    });
    if let Some(std) = confidence.relative_std {
        lines.push(format!("belief: std {std:.3} of the differences between contexts"));
    }
    if let (Some(score), Some(p_value)) = (confidence.ood_score, confidence.p_value) {
        lines.push(format!("ood score: {score:.4}; {:.0}% of known contexts score as high", 100.0 * p_value));
    }
    let how = match inference {
        Inference::Projection => "projection",
        Inference::LeastSquares => "least squares",
    };
    lines.push(match fit {
        Some(fit) => format!("task: by {how}; B expresses {:.0}% of the reward's variation", 100.0 * fit),
        None => format!("task: by {how}"),
    });
    lines.join("\n")
}

/// An action out of JSON, if it is one.
fn parse_action(value: &serde_json::Value) -> Option<ActionBuf> {
    if let Some(index) = value.as_u64() {
        return u32::try_from(index).ok().map(ActionBuf::Discrete);
    }
    let numbers =
        value.as_array()?.iter().map(|x| x.as_f64().map(|x| x as f32)).collect::<Option<Vec<_>>>()?;
    Some(ActionBuf::Continuous(numbers))
}
