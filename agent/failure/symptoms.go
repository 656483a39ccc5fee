package failure

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// symptoms returns the failures of states, units and probes, and the problems of files, in an error. The texts are
// equal if two releases failed in the same way. Texts that name a process, or directories of two releases, are never
// equal.
func symptoms(err error) []string {
	return eachIn(err, func(err error) ([]string, bool) {
		var all []string
		switch e := err.(type) { //nolint:errorlint // eachIn walks the tree
		case *state.Failure:
			comment := strings.TrimPrefix(e.First.Explanation(), e.First.Step.Pos.String()+": ") // each release has other lines
			all = append(all, symptom("state "+e.First.Step.Function()+" "+e.First.ID(), comment))
		case diag.List:
			for _, d := range e {
				all = append(all, anyRelease("file "+d.Pos.File+": "+lineIn().ReplaceAllString(d.Message, "$1")))
			}
		case *diag.Diagnostic:
			return symptoms(diag.List{e}), true
		case *service.Failed:
			for _, r := range e.Results {
				if r.Error != "" {
					all = append(all, symptom("unit "+r.Unit, r.Error))
				}
			}
		case *health.Unhealthy:
			for _, r := range e.Results {
				if r.Error != "" {
					all = append(all, symptom("probe "+r.Probe, r.Error))
				}
			}
		default:
			return nil, false
		}
		return all, true
	})
}

// symptom returns the text of a failure of a state, a unit or a probe. For a unit whose program systemd could not
// start, it is only the unit and the status, which shows what systemd could not do: the rest depends on when the unit
// was checked.
func symptom(of, text string) string {
	status := unstarted().FindStringSubmatch(text)
	unit := unitNamed().FindStringSubmatch(text)
	switch of := strings.TrimPrefix(of, "probe "); {
	case status != nil && strings.HasPrefix(of, "unit "):
		return of + ": not started, status " + status[1]
	case status != nil && unit != nil && strings.HasPrefix(of, "state service."):
		return "unit " + unit[1] + ": not started, status " + status[1]
	}
	return anyRelease(of + ": " + significantText(text))
}

// lineIn finds the lines and columns of positions, which differ between releases. It keeps the ports of URLs.
func lineIn() *regexp.Regexp {
	return regexp.MustCompile(`((?:^|[\s("])/[^\s:]+):\d+(?::\d+)?\b| \(on line \d+\)`)
}

// unstarted finds the status of a program that systemd could not start, see systemd.exec(5).
var unstarted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\A[^\n]*\bstatus (2(?:[0-3]\d|4[0-5]))\b`)
})

// unitNamed finds the unit in an error of a state: "start of UNIT failed" or "UNIT was started, and is".
var unitNamed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:\bof )?(\S+\.service) (?:failed:|was started, and is)`)
})

// eachIn walks the tree of an error in order and joins what take returns for its nodes. It does not descend below a
// node for which take reports true.
func eachIn[T any](err error, take func(error) ([]T, bool)) []T {
	if err == nil {
		return nil
	}
	all, taken := take(err)
	if taken {
		return all
	}
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case interface{ Unwrap() error }:
		return eachIn(e.Unwrap(), take)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, eachIn(one, take)...)
		}
	}
	return all
}

// anyRelease replaces the directory of a release in a text by a placeholder: the script of a probe is in each release.
// It keeps a text with directories of several releases, which says that one runs in the place of another.
func anyRelease(text string) string {
	dirs := releaseDir().FindAllString(text, -1)
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) != 1 {
		return text
	}
	return strings.ReplaceAll(text, dirs[0], "/projects/-/releases/-")
}

var releaseDir = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`/projects/[^/\s]+/releases/[^/\s:;,"']+`)
})

// noReason is the end of a symptom without the reason why a unit failed. Such symptoms are not known to have the same
// cause, so they are never equal.
const noReason = "for no reason that is known"

// significantText returns the text of a failure, or noReason for a text that only says that a unit did not start, or
// how its program ended. From status 200 on, the status shows what systemd could not do for the program, see
// systemd.exec(5).
func significantText(text string) string {
	if bare().MatchString(strings.TrimSpace(text)) {
		return noReason
	}
	return text
}

// bare matches a failure without a reason.
var bare = sync.OnceValue(func() *regexp.Regexp {
	const status = `status 1?\d?\d`
	return regexp.MustCompile(`^(\S+ of \S+ failed: [a-z-]+(, ` + status + `)?` +
		`|\S+ does not start` +
		`|it is [a-z-]+( \([a-z-]+\))?: its program ended with ` + status + `( \([a-z-]+\))?` +
		`|\S+ was started, and is [a-z-]+ now)$`)
})

// sameSymptoms reports whether every symptom of a failure occurred during the rollback as well. A symptom that did not,
// or that has no reason, is of the new release alone.
func sameSymptoms(cause, back []string) bool {
	return len(cause) > 0 && !slices.ContainsFunc(cause, func(s string) bool {
		return strings.HasSuffix(s, noReason) || !slices.Contains(back, s)
	})
}

// SameAfterRollback reports whether the program, state, files, units or probes that made the deploy fail also failed,
// in the same way, with the previous release during the rollback. Then the host is the cause, since both releases ran
// on it.
func SameAfterRollback(cause, back error) bool {
	var failed *hook.Failed
	if !errors.As(cause, &failed) {
		return sameSymptoms(symptoms(cause), symptoms(back))
	}
	return slices.ContainsFunc(programsOf(back), failed.SameFailure)
}

// programsOf returns the failed programs that an error joins.
func programsOf(err error) []*hook.Failed {
	return eachIn(err, func(err error) ([]*hook.Failed, bool) {
		f, ok := err.(*hook.Failed) //nolint:errorlint // eachIn walks the tree
		if !ok {
			return nil, false
		}
		return []*hook.Failed{f}, true
	})
}
