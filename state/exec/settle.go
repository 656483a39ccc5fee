package exec

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// settle checks a resource and, unless the run is dry, applies the difference.
func (r *Runner) settle(ctx context.Context, resource module.Resource, t try, result *Result) {
	diff, err := r.looking(ctx, func(ctx context.Context) (module.Diff, error) {
		return t.look(ctx, resource, r.hostOf(ctx, t.step))
	})
	warnings := result.Warnings
	result.Warnings, result.Comment = slices.Concat(warnings, diff.Warnings), diff.Comment
	switch {
	case err != nil:
		result.fail(err, diff.Changes)
		if _, unsafe := host.Unsafe(err); result.Outcome == Failed && !unsafe {
			t.allowMissing(result, err)
		}
	case diff.Empty():
		result.Outcome = Succeeded
		result.takeMade(t.made)
	case t.dry && diff.Harmless:
		result.Outcome, result.Changes = Succeeded, orEmpty(diff.Changes)
	case t.dry:
		result.Outcome, result.Unknown = Pending, diff.Unknown
		result.Changes, result.Predicted = orEmpty(diff.Planned, diff.Changes), orEmpty(diff.Changes)
		t.allowPrerequisites(result, diff.Missing)
	case r.batch(ctx, resource, &t, result):
		result.Warnings = warnings
		r.settle(ctx, resource, t, result) // the step itself does the part that the batch left
		return
	default:
		r.apply(t.acting(ctx, r), resource, diff, warnings, result)
		result.takeMade(t.made)
	}
	if err == nil && t.dry {
		result.takeParts(diff.More, t.prepared)
		t.overtaken(result)
		t.unpacked(r.hostOf(ctx, t.step), result)
	}
}

// takeParts adds what a dry run predicted beside the step's own result, such as the results of its sub states. If
// steps that this one requires have not run (prepared), a failure of a sub state says nothing about a real run.
func (r *Result) takeParts(more *value.Map, prepared bool) {
	if r.More = more; prepared && r.SubFailure() != "" {
		r.Comment = r.Explanation()
		r.postpone()
		r.More = nil
	}
}

// followUnsafe is the argument with which any state follows links that other users control.
const followUnsafe = "follow_unsafe"

func follows(s *compile.Step) bool { return s.Chunk.Value(followUnsafe) == true }

// hostOf returns the host for a step. If the step has follow_unsafe, the host follows links that other users control.
func (r *Runner) hostOf(ctx context.Context, s *compile.Step) *host.Host {
	h := r.Host.Attributed(ctx)
	if follows(s) {
		return h.Following()
	}
	return h
}

// apply applies a diff. If it fails, the warnings of Check are left out, since they describe the failure.
func (r *Runner) apply(ctx context.Context, resource module.Resource, diff module.Diff, warnings []string,
	result *Result) {
	report, err := r.changed(ctx, resource, diff, result.Step)
	result.Comment, result.Outcome, result.Changes = report.Comment, Succeeded, orEmpty(report.Changes)
	if err != nil {
		result.Warnings = warnings
		result.fail(err, report.Changes)
	}
	result.Warnings = append(result.Warnings, report.Warnings...)
	result.More = report.More
}

// changed has a resource apply a diff.
func (r *Runner) changed(ctx context.Context, resource module.Resource, diff module.Diff,
	s *compile.Step) (report module.Report, err error) {
	defer caught(&err)
	return resource.Apply(host.Applying(ctx), r.hostOf(ctx, s).Ending(ctx), diff)
}

// caught turns a panic of a state function into its failure, so that the run ends as after each failure, and its report
// is complete. The error has the place of the panic.
func caught(err *error) {
	why := recover()
	if why == nil {
		return
	}
	place := "an unknown place"
	callers := make([]uintptr, 32)
	for frames, more := runtime.CallersFrames(callers[:runtime.Callers(1, callers)]), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, "/state/") && !strings.Contains(f.Function, "/state/exec.caught") {
			place = fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
			break
		}
	}
	*err = diag.Internal.Hint(fmt.Errorf("internal error in %s: %v", place, why),
		"this is a mistake of the program, or of a server that it asked: please report it with this text")
}

// fail sets the result to a failure because of err, or to a skip if err is a host.Skipped.
func (r *Result) fail(err error, changes *value.Map) {
	r.Changes = orEmpty(changes)
	var skipped *host.Skipped
	if errors.As(err, &skipped) {
		r.Outcome, r.Skipped, r.Comment = Succeeded, skipped.Error(), "skipped: "+skipped.Error()
		return
	}
	r.Outcome, r.Hint = Failed, diag.HintOf(err)
	if hint, unsafe := host.Unsafe(err); unsafe {
		r.Hint = hint
	}
	r.Comment, r.cause = strings.TrimSpace(err.Error()), err
}

// nameFollowing adds a warning to the result of a step that follows links of other users, so that reports show it.
func (r *Result) nameFollowing() {
	if follows(r.Step) {
		r.Warnings = append(r.Warnings, "follow_unsafe: this state follows links that unprivileged users control")
	}
}

// failOnMachineError fails a step during which the machine had an error, or a path was refused, even if the step
// succeeded: it may have treated a file that could not be read as absent.
func (r *Result) failOnMachineError(machineErr error) {
	if machineErr == nil {
		return
	}
	switch {
	case r.Outcome != Failed || r.cause == nil && r.Comment == "":
		r.Comment = strings.TrimSpace(machineErr.Error() + "\n" + r.Comment)
	case !strings.Contains(r.Comment, machineErr.Error()):
		r.Comment += "\n" + machineErr.Error()
	}
	r.Outcome, r.Skipped, r.NotRun, r.SkipWatch, r.Unknown = Failed, "", false, false, false
	r.Hint = orElse(r.Hint, diag.HintOf(machineErr))
	if hint, unsafe := host.Unsafe(machineErr); unsafe {
		r.Hint = hint
	}
	r.cause = errors.Join(machineErr, r.cause)
}

// findObstruction adds to a failure what is in the way, if that is the reason, and the place of the state in its SLS
// file. If a user other than root may have put it there, Obstruction returns that user, and the hint is how to remove
// it.
func (r *Result) findObstruction(h *host.Host) {
	if r.Outcome != Failed || r.cause == nil {
		return
	}
	by, obstacle := h.ObstructionOf(r.cause)
	_, refused := host.Unsafe(r.cause)
	if own := h.OfOwnLink(r.cause); own != nil {
		r.cause, r.Hint = own, diag.Exposed.Coded("name the target of the link in this state, or put the link where root "+
			"alone may write; `follow_unsafe: true` has the state follow it anyway")
		r.Comment = diag.At(r.Step.Pos, "%s; an earlier state of this run put the link there", r.Comment).Error()
	}
	if refused || obstacle == nil && by == nil {
		return
	}
	if by != nil {
		r.Comment, r.Hint, r.obstruction = by.After(r.Comment), by.Hint(r.Hint), by
	} else {
		r.Comment, r.Hint = obstacle.After(r.Comment), orElse(r.Hint, obstacle.Hint())
	}
	r.Comment = diag.At(r.Step.Pos, "%s", r.Comment).Error()
}

// postpone replaces the failure of a step in a dry run by an unknown result: in a real run its requisites run first,
// and may create what is missing.
func (r *Result) postpone() {
	r.Outcome, r.Unknown, r.Changes, r.Predicted, r.Hint = Pending, true, value.NewMap(), value.NewMap(), ""
	r.Comment = "unknown until the states that it requires have run; on the host as it is now: " + r.Comment
}
