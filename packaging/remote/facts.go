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

// refusals are the reasons why a host cannot run the agent.
type refusals struct {
	host string
	errs []error
}

func (r *refusals) add(t diag.Topic, what, hint string) {
	r.errs = append(r.errs, t.Hint(errors.New(r.host+" "+what), "%s", hint))
}

// check returns why the host cannot run the agent: all reasons at once.
func (f Facts) check(a Agent) error {
	r := &refusals{host: f.destination}
	system := f.values["system"]
	distribution := strings.Fields(f.values["distribution"])
	if system != "Linux" || !slices.Contains(distribution, "debian") && !slices.Contains(distribution, "ubuntu") {
		r.add(diag.Needs, fmt.Sprintf("runs %s %s, and not Debian or Ubuntu", system, strings.Join(distribution, " ")),
			"install the agent there by its package (docs/packages.md)")
	}
	if f.values["systemd"] == "" {
		r.add(diag.Needs, "was not booted with systemd, which runs the agent",
			"boot it with systemd; a container of docker is no host")
	}
	if machine := f.values["machine"]; machine != a.Machine {
		r.add(diag.Needs, fmt.Sprintf("has the architecture %s, and %s is for %s", machine, a.File, a.Machine),
			"give the agent for "+machine+": --agent FILE, of the release that this corpus is from")
	}
	f.checkClock(r)
	f.checkRoom(r, a)
	return errors.Join(r.errs...)
}

func (f Facts) checkClock(r *refusals) {
	seconds, err := strconv.ParseInt(f.values["now"], 10, 64)
	off := f.asked.Sub(time.Unix(seconds, 0)).Round(time.Second)
	if err == nil && off.Abs() <= mostSkew {
		return
	}
	side := "behind"
	if off < 0 {
		side = "ahead of"
	}
	r.add(diag.Clock, fmt.Sprintf("has a clock that is %s %s that of this machine", off.Abs(), side),
		"set it: timedatectl set-ntp true; or date -s, if this machine is right")
}

// room is how much more than the agent has to be free, in KiB.
const room = 16 << 10

func (f Facts) checkRoom(r *refusals, a Agent) {
	for place, dir := range map[string]string{"free_var": "/var/lib", "free_usr": "/usr/bin", "free_etc": "/etc"} {
		need := int64(1 << 10)
		if f.values["agent"] != a.Program && place != "free_etc" {
			need = 2*int64(len(a.Data))>>10 + room
		}
		free, err := strconv.ParseInt(f.values[place], 10, 64)
		if place == "free_var" {
			free += f.part >> 10
		}
		if err != nil || free < need {
			r.add(diag.Disk, fmt.Sprintf("has %s KiB free in %s, and %d KiB are needed", f.values[place], dir, need),
				"make room there: df -h "+dir+"; apt-get clean")
		}
	}
}
