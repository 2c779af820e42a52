#!/bin/bash
# rank.sh PROGRAM ARGS...: becomes the program. What rank 0 puts out goes to the recorder of
# executed.ipynb, if there is one. It sets no variable: one of the program's environment may have
# the same name.
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-0}}}" = 0 ] && [ -S "$GONBATCH_RECORDER" ]; then
  exec "${0%/*}/submit" recorder attach "$@"
fi
unset GONB_PIPE GONB_PIPE_BACK # Those of a notebook that this was started from.
exec "$@"
