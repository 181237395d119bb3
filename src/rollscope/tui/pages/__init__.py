"""The pages of `rollscope top`: each wants one answer of the run and shows it."""
