#!/usr/bin/env bash
# The checks of language models and files beside PyTorch, transformers and PEFT: CHECK_check.py. PyTorch is large,
# so they need a Python that has them: LOOM_EMBED_PYTHON or python3. Otherwise they are skipped. The last line
# counts.
#   tests/outside/torch_peers.sh CHECK [PRESET] [--whole]
#   CHECK: folder, families, experts, positions, adapters or torch_files; without --whole, a sample of it
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

check="${1:-}" preset="${2:-dev}" size="${3:-}"
with=(--runner "build/$preset/tests/model_runner")
case "$check$size" in
  folder) with+=(--only LlamaForCausalLM) ;;
  families) with+=(--configs 1 --classes GraniteForCausalLM FalconForCausalLM Glm4ForCausalLM
    Gemma3ForConditionalGeneration) ;;
  families--whole) with+=(--configs 30) ;;
  experts) with+=(--count 1) ;;
  positions) with+=(--cases 1) ;;
  adapters) with+=(--cases 6) ;;
  adapters--whole) with+=(--cases 300) ;;
  positions--whole) with+=(--cases 40) ;;
  torch_files) with=(--loom "build/$preset/cli/loom" --cases 10) ;;
  torch_files--whole) with=(--loom "build/$preset/cli/loom" --cases 2000) ;;
  folder--whole|experts--whole) ;;
  *) die "unknown check '$check$size'; see the head of ${BASH_SOURCE[0]}" ;;
esac
python="${LOOM_EMBED_PYTHON:-python3}"
modules="torch, transformers"
[[ "$check" != adapters ]] || modules+=", peft"
"$python" -c "import $modules" 2>/dev/null || {
  say "skipped: $python lacks one of $modules; LOOM_EMBED_PYTHON names one that has them"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" -W ignore "tests/outside/${check}_check.py" "${with[@]}"
