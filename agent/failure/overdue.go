package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Overdue is the error of work that took longer than a setting allows.
type Overdue struct {
	Setting string
	Limit   time.Duration
}

func (o *Overdue) Error() string {
	return fmt.Sprintf("%s (%s) was over", o.Setting, recipe.Short(o.Limit))
}

// Unwrap returns context.DeadlineExceeded.
func (o *Overdue) Unwrap() error { return context.DeadlineExceeded }

func (o *Overdue) hint() string {
	return fmt.Sprintf("see what takes so long, or raise %s in agent.yaml", o.Setting)
}

// Within calls work with the time limit of a setting. If the limit caused the error, the returned error names the
// setting and wraps an Overdue.
func Within(ctx context.Context, setting string, limit time.Duration, work func(context.Context) error) error {
	over := &Overdue{Setting: setting, Limit: limit}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, over)
	defer cancel()
	err := work(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(ctx), over) || errors.Is(err, over) {
		return err
	}
	return diag.Timeout.Hint(&overdueWork{over: over, err: err}, "%s", over.hint())
}

// overdueWork is the error of work that its time limit ended.
type overdueWork struct {
	over *Overdue
	err  error
}

func (w *overdueWork) Error() string {
	during := strings.TrimSuffix(strings.TrimSuffix(w.err.Error(), context.DeadlineExceeded.Error()), ": ")
	if during == "" {
		return w.over.Error()
	}
	return w.over.Error() + ": " + during
}

func (w *overdueWork) Unwrap() []error { return []error{w.over, w.err} }
