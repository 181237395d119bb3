"""GRPO with a small transformer in PyTorch, on a GPU or the CPU, timed where the work is done.

python examples/torch_grpo.py [--steps 60] [--dir runs], then: rollscope view runs/torch-grpo

The model sees a few digits and is rewarded for repeating them. Every sample is a session, every
stage of a step a span, and `cuda.span` also records when the GPU worked on it.
"""

import argparse
import contextvars
import os
import time

import torch
from torch import Tensor, nn

import rollscope as rs
from rollscope.integrations import cuda

DIGITS, GROUP = 10, 8
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Policy(nn.Module):
    """A transformer over digits; the positions tell which one comes next."""

    def __init__(self, length: int, width: int, layers: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(DIGITS, width)
        self.places = nn.Embedding(2 * length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, DIGITS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Give the logits of what follows each token."""
        length = tokens.shape[1]
        seen = self.tokens(tokens) + self.places(torch.arange(length, device=tokens.device))
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        return self.head(self.body(seen, mask=mask, is_causal=True))


class Block:
    """Blocks of Rollscope in a context of their own, since those of a batch are open at once."""

    def __init__(self, around: contextvars.Context, *blocks: rs.Span) -> None:
        self.context, self._blocks = around.copy(), blocks
        for block in blocks:
            self.context.run(block.__enter__)

    def close(self) -> None:
        """Leave the blocks, the innermost first."""
        for block in reversed(self._blocks):
            self.context.run(block.__exit__, None, None, None)


@torch.no_grad()
def roll_out(policy: Policy, prompts: Tensor, step: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sample answers for all prompts at once; gives tokens, log-probabilities and rewards."""
    length = prompts.shape[1]
    tasks, sessions, samples = [], [], []
    for row in range(len(prompts)):
        if row % GROUP == 0:
            task = rs.task(f"digits/{step}-{row // GROUP}", step=step)
            tasks.append(Block(contextvars.copy_context(), task))
        sessions.append(rs.session(sample=row % GROUP, version=step))
        samples.append(Block(tasks[-1].context, sessions[-1], rs.phase("generate")))
    tokens, chosen = prompts, []
    with cuda.span("generate", tokens=length * len(prompts)):
        for _ in range(length):
            logits = policy(tokens)[:, -1].log_softmax(-1)
            token = torch.multinomial(logits.exp(), 1)
            chosen.append(logits.gather(1, token))
            tokens = torch.cat((tokens, token), 1)
    with cuda.span("reward"):
        rewards = (tokens[:, length:] == prompts).float().mean(1)
    for session, sample, reward in zip(sessions, samples, rewards.tolist(), strict=True):
        session.finish("accepted", reward=reward)
        sample.close()
    for block in tasks:
        block.close()
    return tokens, torch.cat(chosen, 1), rewards


def learn(
    policy: Policy,
    optimiser: torch.optim.Optimizer,
    tokens: Tensor,
    before: Tensor,
    rewards: Tensor,
) -> None:
    """Take one step up the clipped objective, with advantages within each group."""
    length = tokens.shape[1] // 2
    groups = rewards.view(-1, GROUP)
    spread = groups.std(1, keepdim=True) + 1e-4
    advantages = ((groups - groups.mean(1, keepdim=True)) / spread).view(-1, 1)
    with cuda.span("forward"):
        logits = policy(tokens[:, :-1])[:, length - 1 :].log_softmax(-1)
        ratios = (logits.gather(2, tokens[:, length:, None]).squeeze(2) - before).exp()
        kept = torch.minimum(ratios * advantages, ratios.clamp(0.8, 1.2) * advantages)
    with cuda.span("backward"):
        optimiser.zero_grad(set_to_none=True)
        (-kept.mean()).backward()
    with cuda.span("optimizer.step"):
        optimiser.step()


def main() -> None:
    """Train, and say what each step came to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--digits", type=int, default=4)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", default=os.environ.get("ROLLSCOPE_DIR", "runs"))
    args = parser.parse_args()
    rs.init(run="torch-grpo", dir=args.dir, role="trainer", rank=0)
    torch.manual_seed(args.seed)
    policy = Policy(args.digits, args.width, args.layers).to(DEVICE)
    optimiser = torch.optim.Adam(policy.parameters(), args.rate)
    for step in range(args.steps):
        began = time.perf_counter()
        with rs.step(step, version=step):
            prompts = torch.randint(DIGITS, (args.prompts, args.digits), device=DEVICE)
            with rs.span("rollout", category="compute"):
                found = roll_out(policy, prompts.repeat_interleave(GROUP, 0), step)
            with rs.span("train", category="compute"):
                for _ in range(2):
                    learn(policy, optimiser, *found)
            reward = found[2].mean().item()  # waits for the GPU, as logging usually does
        rs.gauge("reward.mean", reward)
        took_s = time.perf_counter() - began
        print(f"step {step}: reward {reward:.3f} in {1000 * took_s:.1f} ms")
    cuda.flush()
    rs.shutdown()


if __name__ == "__main__":
    main()
