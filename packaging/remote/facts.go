package remote

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Facts are what a host has.
type Facts struct {
	destination string
	values      map[string]string
	asked       time.Time // when the host gave its time, by this machine's clock
	part        int64     // bytes of the agent that an earlier command has copied
	config      []byte    // of agent.yaml; nil if there is none
}

// Hostname returns the name of the host.
func (f Facts) Hostname() string { return f.values["hostname"] }

func parseFacts(destination, out string, now time.Time) (Facts, error) {
	f := Facts{destination: destination, values: map[string]string{}, asked: now}
	for line := range strings.Lines(out) { // the shell of the user may print more
		if fact, is := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "corpus:"); is {
			key, value, _ := strings.Cut(fact, "=")
			f.values[key] = strings.TrimSpace(value)
		}
	}
	if f.values["end"] == "" {
		return f, diag.SSH.Hint(fmt.Errorf("%s did not say everything about itself", destination),
			"see that `ssh %s true` works, and run the command again", destination)
	}
	var err error
	if text, there := f.values["config"]; there {
		if f.config, err = base64.StdEncoding.DecodeString(text); err != nil {
			return f, fmt.Errorf("reading agent.yaml of %s: %w", destination, err)
		}
		f.config = append([]byte{}, f.config...) // not nil
	}
	if text := f.values["part"]; text != "" {
		f.part, err = strconv.ParseInt(text, 10, 64)
	}
	return f, err
}

// mostSkew is how far the clock of a host may be off. Stores refuse requests with a time that is 15 minutes off.
const mostSkew = 5 * time.Minute

// check returns why the host cannot run the agent: all reasons at once.
func (f Facts) check(a Agent) error {
	return errors.Join(f.checkSystem(), f.checkMachine(a), f.checkClock(), f.checkRoom(a))
}

func (f Facts) checkSystem() error {
	var errs []error
	system, distribution := f.values["system"], strings.Fields(f.values["distribution"])
	if system != "Linux" || !slices.Contains(distribution, "debian") && !slices.Contains(distribution, "ubuntu") {
		errs = append(errs, diag.Needs.Hint(fmt.Errorf("%s runs %s %s, and not Debian or Ubuntu", f.destination, system,
			strings.Join(distribution, " ")), "install the agent there by its package (docs/packages.md)"))
	}
	if f.values["systemd"] == "" {
		errs = append(errs, diag.Needs.Hint(fmt.Errorf("%s was not booted with systemd, which runs the agent", f.destination),
			"boot it with systemd; a container of docker does not suffice"))
	}
	return errors.Join(errs...)
}

func (f Facts) checkMachine(a Agent) error {
	machine := f.values["machine"]
	if machine == a.Machine {
		return nil
	}
	return diag.Needs.Hint(fmt.Errorf("%s has the architecture %s, and %s is for %s", f.destination, machine, a.File,
		a.Machine), "give the agent for %s: --agent FILE, of the release that this corpus is from", machine)
}

func (f Facts) checkClock() error {
	seconds, err := strconv.ParseInt(f.values["now"], 10, 64)
	off := f.asked.Sub(time.Unix(seconds, 0)).Round(time.Second)
	if err == nil && off.Abs() <= mostSkew {
		return nil
	}
	side := "behind"
	if off < 0 {
		side = "ahead of"
	}
	return diag.Clock.Hint(fmt.Errorf("%s has a clock that is %s %s that of this machine", f.destination, off.Abs(), side),
		"set it: timedatectl set-ntp true; or date -s, if this machine is right")
}

// room is how much more than the agent has to be free, in KiB.
const room = 16 << 10

func (f Facts) checkRoom(a Agent) error {
	var errs []error
	for _, c := range [][2]string{{"free_var", "/var/lib"}, {"free_usr", "/usr/bin"}, {"free_etc", "/etc"}} {
		place, dir, need := c[0], c[1], int64(1<<10)
		if f.values["agent"] != a.Program && place != "free_etc" {
			need = 2*int64(len(a.Data))>>10 + room
		}
		free, err := strconv.ParseInt(f.values[place], 10, 64)
		if place == "free_var" {
			free += f.part >> 10
		}
		if err != nil || free < need {
			errs = append(errs, diag.Disk.Hint(fmt.Errorf("%s has %s KiB free in %s, and %d KiB are needed", f.destination,
				f.values[place], dir, need), "make room there: df -h %s; apt-get clean", dir))
		}
	}
	return errors.Join(errs...)
}
