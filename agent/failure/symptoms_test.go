package failure

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/python"
)

// One cause is one symptom, independent of the state of the unit when it was read and of the reader.
func TestAProgramThatSystemdCannotStartIsOneSymptom(t *testing.T) {
	probe := func(text string) error {
		return &health.Unhealthy{Results: []health.Result{{Probe: "unit web.service", Error: text}}}
	}
	unit := func(text string) error {
		return &service.Failed{Results: []service.Result{{Unit: "web.service", Error: text}}, Err: errors.New(text)}
	}
	same := []error{
		probe("it is failed (failed): its program ended with status 200 (exit-code)"),
		probe("it is activating (auto-restart): its program ended with status 200 (exit-code)"),
		unit("restart of web.service failed: exit-code, status 200\n" +
			"web.service: Changing to the requested working directory failed: Permission denied"),
		unit("web.service was started, and is failed (failed) now: its program ended with status 200 (exit-code)"),
	}
	for i, cause := range same {
		for j, back := range same {
			if !SameAfterRollback(cause, back) {
				t.Errorf("%d and %d have different symptoms: %q, %q", i, j, symptoms(cause), symptoms(back))
			}
		}
	}
	other := []error{
		probe("it is failed (failed): its program ended with status 203 (exit-code)"),
		probe("it is failed (failed): its program ended with status 1 (exit-code)"),
		probe("it is failed (failed): its program ended with status 255 (exit-code)"),
		unit("restart of web.service failed: exit-code, status 1\nweb: cannot continue: status 200 of the API"),
		&health.Unhealthy{Results: []health.Result{{Probe: "unit worker.service",
			Error: "it is failed (failed): its program ended with status 200 (exit-code)"}}},
	}
	for i, back := range other {
		if SameAfterRollback(same[0], back) || SameAfterRollback(back, same[0]) {
			t.Errorf("%d has the same symptoms as status 200 of web.service: %q", i, symptoms(back))
		}
	}
}

// TestFileThatFailsInBothReleasesIsOneSymptom compares files that do not render with those of the release before.
func TestFileThatFailsInBothReleasesIsOneSymptom(t *testing.T) {
	const sls = "/srv/service/next/states/a.sls"
	problem := func(file string, line int, message string) error {
		return fmt.Errorf("converging: %w", diag.List{diag.At(diag.Pos{File: file, Line: line}, "%s", message)})
	}
	cause := problem(sls, 3, "m.f: UnicodeDecodeError: byte 0xff of /home/ann/notes (/srv/service/next/m.py:7, in f)")
	same := problem(sls, 5, "m.f: UnicodeDecodeError: byte 0xff of /home/ann/notes (/srv/service/next/m.py:9, in f)")
	if !SameAfterRollback(cause, errors.Join(errors.New("a unit failed"), same)) {
		t.Errorf("%q is not one symptom with %q", symptoms(cause), symptoms(same))
	}
	for _, other := range []error{nil, errors.New("a hook failed"), problem(sls, 3, "m.f: KeyError: 'x'"),
		problem("/srv/service/next/states/b.sls", 3,
			"m.f: UnicodeDecodeError: byte 0xff of /home/ann/notes (/srv/service/next/m.py:7, in f)")} {
		if SameAfterRollback(cause, other) {
			t.Errorf("%v has the same symptoms", other)
		}
	}
	if two := errors.Join(cause, problem(sls, 9, "'x' is undefined")); SameAfterRollback(two, same) {
		t.Errorf("%v has the same symptoms as %v", two, same)
	}
	if SameAfterRollback(problem(sls, 1, "http://a:80 refuses"), problem(sls, 1, "http://a:81 refuses")) {
		t.Error("two ports are one symptom")
	}
}

// TestMissingGrainsAreAFaultOfTheHost tells grains that a fault of the host costs from those of a module that fails.
func TestMissingGrainsAreAFaultOfTheHost(t *testing.T) {
	killed := fmt.Errorf("grain modules: %w", &python.Killed{Err: errors.New("loading x.py: killed")})
	full := python.Failure("x.f: OSError: [Errno 28] No space left on device")
	for _, reason := range []error{killed, fmt.Errorf("x.py: %w", full), fmt.Errorf("starting x: %w", syscall.EMFILE),
		python.Failure("x.f: ConnectionRefusedError: [Errno 111] Connection refused"),
		&python.Unstarted{Err: errors.New("no python3")}} {
		unknown := OfGrains([]error{errors.New("x.g: KeyError: 'a'"), reason})
		if unknown == nil || !OfHost(unknown) || !strings.Contains(diag.HintOf(unknown), "changes nothing") {
			t.Errorf("%v gives %v", reason, unknown)
		}
		if !AlsoGrains(unknown, errors.Join(fmt.Errorf("converging: %w", unknown))) ||
			AlsoGrains(unknown, errors.New("a hook failed")) {
			t.Errorf("%v: the rollback does not fail for the same reason", reason)
		}
	}
	if !Killed(OfGrains([]error{killed})) {
		t.Error("kills of grain modules are not counted")
	}
	absent := &python.Unstarted{Err: fmt.Errorf("x: %w", python.ErrAbsent)}
	if OfGrains([]error{absent}) == nil || OfGrains(ExceptAbsentPython([]error{absent})) != nil ||
		OfGrains(ExceptAbsentPython([]error{absent, killed})) == nil {
		t.Error("a host without python3 counts as one that lost it")
	}
	ordinary := []error{errors.New("x.g: KeyError: 'a'"), python.Failure("x.h: it took more than 10s"),
		python.Failure("x.i: PermissionError: [Errno 13] Permission denied: '/a'"),
		python.Failure("x.j: ValueError: no\n  File \"x.py\", line 3, in j\n    raise ValueError('no') # Input/output error")}
	if err := OfGrains(ordinary); err != nil {
		t.Errorf("exceptions of modules are %v", err)
	}
}
