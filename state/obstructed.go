package state

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Obstructed is the cause of each problem of a compile that failed only because of what unprivileged users control,
// such as a pipe in the place of a file that a template reads. The host is at fault then, and not a release.
type Obstructed struct{ Path string }

func (o *Obstructed) Error() string { return "an unprivileged user can change " + o.Path }

// attribute adds to the problems of a compile what a user may have put in the way. If all problems have that cause,
// each gets an *Obstructed as its cause.
func attribute(h *host.Host, err error) {
	var list diag.List
	var one *diag.Diagnostic
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = diag.List{one}
	}
	causes := make([]*Obstructed, 0, len(list))
	for _, d := range list {
		if o := obstructedBy(h, d); o != nil {
			causes = append(causes, o)
		}
	}
	if len(causes) != len(list) {
		return
	}
	for i, d := range list {
		d.Cause = causes[i]
	}
}

// obstructedBy returns the obstruction that caused a problem, and describes it in the problem; nil if there is none.
func obstructedBy(h *host.Host, d *diag.Diagnostic) *Obstructed {
	var refused *walk.UnsafeError
	if d.Object == nil {
		return nil
	}
	if errors.As(d.Object, &refused) {
		h.WithNames(d.Object, &d.Message, &d.Hint)
		return &Obstructed{refused.Path}
	}
	by, _ := h.ObstructionOf(d.Object)
	if by == nil {
		return nil
	}
	h.WithNames(d.Object, &d.Message)
	d.Message, d.Hint = by.After(d.Message), by.Hint(d.Hint)
	return &Obstructed{by.Path}
}
