// Package timezone implements timezone.system, which sets the time zone of the host.
//
// The zone is the target of /etc/localtime, which is replaced atomically, so that programs always find a zone.
// As in Salt, two names are equal if their files have the same content.
package timezone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Functions returns the functions of timezone.
func Functions() module.Table {
	return module.Table{"system": func() module.Resource { return &system{UTC: true} }}
}

const (
	zones     = "/usr/share/zoneinfo/"
	localtime = "/etc/localtime"
	adjtime   = "/etc/adjtime"
)

// system implements timezone.system.
type system struct {
	Name string `sls:"name"`
	UTC  bool   `sls:"utc"` // the hardware clock runs in UTC; false keeps its present setting
}

func (s *system) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	zone, err := s.otherZone(h)
	if errors.Is(err, errUnknown) && !exists(h, strings.TrimSuffix(zones, "/")) {
		return module.Diff{Unknown: true, Planned: value.NewMap(),
			Comment: "there are no time zones on this host; if an earlier state brings them, the zone would be set"}, nil
	}
	if err != nil {
		return module.Diff{}, err
	}
	clock, err := s.otherClock(h)
	if err != nil {
		return module.Diff{}, err
	}
	changes := value.NewMap()
	var would []string
	if zone {
		changes.Set("timezone", s.Name)
		would = append(would, "the time zone would be set to "+s.Name)
	}
	if clock {
		changes.Set("utc", true)
		would = append(would, "the hardware clock would be set to UTC")
	}
	if len(would) == 0 {
		return module.Diff{Comment: "the time zone is " + s.Name}, nil
	}
	return module.Diff{Changes: changes, Planned: value.NewMap(), Comment: strings.Join(would, ", ")}, nil
}

var errUnknown = errors.New("there is no such time zone")

// otherZone reports whether the host has another time zone.
func (s *system) otherZone(h *host.Host) (bool, error) {
	wanted, err := s.zone(h)
	if err != nil {
		return false, err
	}
	have, err := h.Files.ReadFile(localtime)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return err != nil || !bytes.Equal(have, wanted), nil
}

// zone returns the content of the declared zone's file. The name must not lead out of the directory of zones.
func (s *system) zone(h *host.Host) ([]byte, error) {
	fail := func() error {
		return diag.Setting.Hint(fmt.Errorf("%w: %s", errUnknown, s.Name),
			"take a name that `timedatectl list-timezones` shows, and install the package tzdata (tzdata-legacy for "+
				"old names)")
	}
	if !fs.ValidPath(s.Name) {
		return nil, fail()
	}
	info, err := h.Files.Stat(zones + s.Name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, host.ErrNotDir) || err == nil && !info.IsRegular() {
		return nil, fail()
	}
	if err != nil {
		return nil, err
	}
	return h.Files.ReadFile(zones + s.Name)
}

// otherClock reports whether the hardware clock runs in local time but should run in UTC.
func (s *system) otherClock(h *host.Host) (bool, error) {
	lines, err := readClock(h)
	return s.UTC && len(lines) > 2 && strings.TrimSpace(lines[2]) == "LOCAL", err
}

// readClock returns the lines of adjtime(5), whose third line is UTC or LOCAL. Without that line, the clock
// runs in UTC.
func readClock(h *host.Host) ([]string, error) {
	data, err := h.Files.ReadFile(adjtime)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Split(string(data), "\n"), err
}

func (s *system) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	changes := value.NewMap()
	zone, err := s.otherZone(h)
	if err != nil {
		return module.Report{}, err
	}
	if zone {
		if err := s.setZone(h); err != nil {
			return module.Report{}, err
		}
		changes.Set("timezone", s.Name)
	}
	if clock, err := s.otherClock(h); err != nil || clock {
		if err == nil {
			err = setClock(ctx, h)
		}
		if err != nil {
			return module.Report{Changes: changes}, err
		}
		changes.Set("utc", true)
	}
	return module.Report{Changes: changes, Comment: "the time zone was set to " + s.Name}, nil
}

// setZone sets the target of /etc/localtime, and writes the name of the zone to the files in which
// distributions store it.
func (s *system) setZone(h *host.Host) error {
	if err := h.Files.Symlink(zones+s.Name, localtime); err != nil {
		return err
	}
	if exists(h, "/etc/timezone") || exists(h, "/etc/debian_version") {
		if err := h.WriteText("/etc/timezone", s.Name+"\n"); err != nil {
			return err
		}
	}
	for _, key := range []string{"ZONE", "TIMEZONE"} {
		if err := note(h, "/etc/sysconfig/clock", key, s.Name); err != nil {
			return err
		}
	}
	return nil
}

func exists(h *host.Host, path string) bool {
	_, err := h.Files.Stat(path)
	return err == nil
}

// note sets a setting in a file that contains it.
func note(h *host.Host, file, key, v string) error {
	data, err := h.Files.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	changed := false
	for i, l := range lines {
		if strings.HasPrefix(l, key+"=") {
			lines[i], changed = fmt.Sprintf("%s=%q\n", key, v), true
		}
	}
	if !changed {
		return nil
	}
	return h.WriteText(file, strings.Join(lines, ""))
}

// setClock makes the hardware clock run in UTC. On a running system with systemd, timedatectl also sets the
// clock. Otherwise only the file changes.
func setClock(ctx context.Context, h *host.Host) error {
	if _, ok := h.Which("timedatectl"); ok && exists(h, "/run/systemd/system") &&
		h.Kernel.Allowed("setting the clock") == nil {
		_, err := h.Tool(ctx, host.Tool{Argv: []string{"timedatectl", "set-local-rtc", "false"},
			Changes: host.Subject{Kind: host.KindFile, Name: adjtime}})
		return host.Failed(diag.Setting, err, "having the hardware clock run in UTC", "see `timedatectl status` on the host")
	}
	lines, err := readClock(h)
	if err != nil {
		return err
	}
	lines[2] = "UTC"
	return h.WriteText(adjtime, strings.Join(lines, "\n"))
}
