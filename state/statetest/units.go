package statetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Units is an init system that keeps its units in files of the case's tree:
//
//	/units      a unit in each line: "web.service active enabled", and optionally masked, masked-runtime,
//	            fails (it cannot start), ends (its program ends after the start)
//	/units.log  the actions so far: "start web.service"
//	/chroot     exists if units cannot be started and stopped
type Units struct{ h *Host }

// UseUnits sets the init system of a host.
func UseUnits(h *Host) *Units {
	u := &Units{h}
	h.Units = u
	return u
}

type unit struct {
	host.Unit
	fails, ends bool
}

func (u *Units) read() []unit {
	data, _ := u.h.Files.ReadFile("/units") // none without the file
	var units []unit
	for line := range strings.SplitSeq(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		words := f[3:]
		units = append(units, unit{
			Unit: host.Unit{Name: f[0], Found: true, Active: f[1], Boot: f[2],
				Masked: slices.Contains(words, "masked"), MaskedRuntime: slices.Contains(words, "masked-runtime")},
			fails: slices.Contains(words, "fails"), ends: slices.Contains(words, "ends"),
		})
	}
	return units
}

// Names lists the services in /units, without .service.
func (u *Units) Names(context.Context) ([]string, error) {
	var names []string
	for _, one := range u.read() {
		names = append(names, strings.TrimSuffix(one.Name, ".service"))
	}
	return names, nil
}

func (u *Units) write(units []unit) {
	slices.SortFunc(units, func(a, b unit) int { return cmp.Compare(a.Name, b.Name) })
	var text strings.Builder
	for _, one := range units {
		text.WriteString(strings.Join([]string{one.Name, one.Active, one.Boot}, " "))
		for _, word := range []struct {
			on   bool
			text string
		}{{one.Masked, " masked"}, {one.MaskedRuntime, " masked-runtime"}, {one.fails, " fails"}, {one.ends, " ends"}} {
			if word.on {
				text.WriteString(word.text)
			}
		}
		text.WriteString("\n")
	}
	u.put("/units", text.String())
}

func (u *Units) put(file, text string) {
	if err := u.h.Files.Write(file, host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1}); err != nil {
		panic(err) // the test has created the directory
	}
}

func (u *Units) log(line string) {
	old, _ := u.h.Files.ReadFile("/units.log") // it is missing before the first line
	u.put("/units.log", string(old)+line+"\n")
}

// Allowed returns an error if /chroot exists.
func (u *Units) Allowed(what string) error {
	if _, err := u.h.Files.Lstat("/chroot"); err == nil {
		return &host.Skipped{What: what}
	}
	return nil
}

// AllowedAtBoot allows everything.
func (u *Units) AllowedAtBoot(string) error { return nil }

func full(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	return name + ".service"
}

// Unit returns the unit in /units with a name.
func (u *Units) Unit(_ context.Context, name, _ string) (host.Unit, error) {
	for _, one := range u.read() {
		if one.Name == full(name) {
			return one.Unit, nil
		}
	}
	return host.Unit{Name: full(name)}, nil
}

// change changes a line of /units and logs it. A unit that does not exist can only be masked.
func (u *Units) change(name, verb string, change func(*unit) error) error {
	units := u.read()
	i := slices.IndexFunc(units, func(one unit) bool { return one.Name == full(name) })
	if i < 0 && verb == "mask" {
		units, i = append(units, unit{Unit: host.Unit{Name: full(name), Active: "inactive", Boot: "masked"}}), len(units)
	}
	if i < 0 {
		var names []string
		for _, one := range units {
			names = append(names, one.Name)
		}
		return diag.Unit.Hint(fmt.Errorf("no such unit: %s", full(name)), "%s", diag.DidYouMean(full(name), names))
	}
	u.log(verb + " " + full(name))
	err := change(&units[i])
	u.write(units)
	return err
}

// Act applies a verb, such as start or stop, to a unit.
func (u *Units) Act(_ context.Context, verb host.UnitVerb, name string, _ bool) error {
	if err := u.Allowed(string(verb)); err != nil {
		return err
	}
	return u.change(name, string(verb), func(one *unit) error {
		switch {
		case verb == host.Stop:
			one.Active = "inactive"
		case one.Masked || one.MaskedRuntime:
			return diag.Unit.Hint(errors.New(one.Name+" is masked"), "unmask it first")
		case one.fails:
			one.Active = "failed"
			return fmt.Errorf("%s of %s failed: exit-code, status 1\nthe last words of it", verb, one.Name)
		case one.ends:
			one.Active = "inactive"
		default:
			one.Active = "active"
		}
		return nil
	})
}

// Stays returns an error for a unit that has ended.
func (u *Units) Stays(ctx context.Context, name string, _ time.Time) error {
	one, err := u.Unit(ctx, name, "")
	if err == nil && one.Found && !one.Running() {
		err = fmt.Errorf("%s was started, and is %s now: its program ended\nthe last words of it", name, one.Active)
		err = diag.Unit.Hint(err, "a unit that ends needs RemainAfterExit=yes to count as up")
	}
	return err
}

// SetBoot enables, disables, masks or unmasks a unit.
func (u *Units) SetBoot(_ context.Context, verb host.BootVerb, name string, runtime bool) error {
	return u.change(name, string(verb), func(one *unit) error {
		switch verb {
		case host.Enable:
			one.Boot = "enabled"
		case host.Disable:
			one.Boot = "disabled"
		default:
			if runtime {
				one.MaskedRuntime = verb == host.Mask
			} else {
				one.Masked = verb == host.Mask
			}
		}
		return nil
	})
}
