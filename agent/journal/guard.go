package journal

import "errors"

// guardPath is the path of a Planned that records that a guard runs or, without a step, that no guard runs any more. No
// file has this path, so agents of earlier versions, which take it for a path that a step may create, ignore it.
const guardPath = "/proc/corpus-agent-guard"

// GuardStarted records that a guard of the present steps runs, if the run has changed something. What the guard does is
// not recorded, but an interruption of the run is attributed to it. The caller calls GuardDone after the guard has
// ended.
func (r *Recorder) GuardStarted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guards++
	if r.writer == nil {
		return nil
	}
	return explain(errors.Join(r.writer.add(kindPlanned, Planned{Step: r.atWork(), Path: guardPath}), r.writer.sync()))
}

// GuardDone records that a guard has ended.
func (r *Recorder) GuardDone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guards--; r.writer == nil || r.guards > 0 {
		return nil
	}
	return explain(errors.Join(r.writer.add(kindPlanned, Planned{Path: guardPath}), r.writer.flush()))
}
