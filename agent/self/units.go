package self

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// The units that run the agent.
const (
	Service = "corpus-agent.service"
	Timer   = "corpus-agent.timer"
)

// Units has the properties of the agent's units in systemd. The zero Units is that of a host without them.
type Units struct{ Service, Timer Unit }

// Unit has the properties of one unit.
type Unit struct {
	Load   string // loaded, not-found, masked, bad-setting ...
	Boot   string // enabled, disabled ...
	Active string
	Error  string     // why it could not be loaded
	Start  [][]string // the command lines of a service
}

// Units queries systemd. It returns none if systemd cannot be queried.
func (s *Self) Units(ctx context.Context) Units {
	if s.Systemctl == nil {
		return Units{}
	}
	out, err := s.Systemctl(ctx, "show", "-p", "Id,LoadState,LoadError,UnitFileState,ActiveState,ExecStart", Service,
		Timer)
	if err != nil {
		return Units{}
	}
	return parse(out)
}

// parse parses the output of `systemctl show`, a paragraph for each unit.
func parse(answer string) Units {
	var all Units
	for paragraph := range strings.SplitSeq(answer, "\n\n") {
		var id string
		var u Unit
		for line := range strings.Lines(paragraph) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch name {
			case "Id":
				id = value
			case "LoadState":
				u.Load = value
			case "LoadError":
				u.Error = strings.Trim(strings.TrimSpace(strings.TrimLeft(value,
					"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.0123456789")), `"`)
			case "UnitFileState":
				u.Boot = value
			case "ActiveState":
				u.Active = value
			case "ExecStart":
				u.Start = append(u.Start, commandLine(value))
			}
		}
		switch id {
		case Service:
			all.Service = u
		case Timer:
			all.Timer = u
		}
	}
	return all
}

// commandLine parses a command in the output of systemctl: { path=/bin/a ; argv[]=/bin/a b ; ... }.
func commandLine(value string) []string {
	_, rest, found := strings.Cut(value, "argv[]=")
	if !found {
		return nil
	}
	words, _, _ := strings.Cut(rest, " ; ")
	return strings.Fields(words)
}

// Program returns the command line by which a unit starts the agent, up to the agent's program: before it may be a
// program that starts it, such as chrt. It returns nil if the unit starts something else.
func (u Unit) Program() []string {
	for _, line := range u.Start {
		i := slices.IndexFunc(line, func(word string) bool { return filepath.IsAbs(word) && filepath.Base(word) == Name })
		if i >= 0 {
			return line[:i+1]
		}
	}
	return nil
}

func (u Unit) works() bool { return u.Load == "loaded" }

func (u Unit) enabled() bool { return u.Boot == "enabled" || u.Boot == "enabled-runtime" }

// Lost compares the agent's units with an earlier state, and describes a property that they have lost, such as being
// enabled; "" if there is none.
func (s *Self) Lost(ctx context.Context, before Units) string {
	if before.Service.Load == "" {
		return ""
	}
	return before.lost(s.Units(ctx))
}

// lost describes a property that the units have lost; "" if there is none.
func (before Units) lost(now Units) string {
	switch {
	case before.Service.works() && !now.Service.works():
		return fmt.Sprintf("systemd does not load %s any more: %s", Service, now.Service.why())
	case before.Service.Program() != nil && now.Service.Program() == nil:
		return fmt.Sprintf("%s does not start %s any more", Service, Name)
	case before.Timer.works() && !now.Timer.works():
		return fmt.Sprintf("systemd does not load %s any more: %s", Timer, now.Timer.why())
	case before.Timer.works() && before.Timer.enabled() && !now.Timer.enabled():
		return fmt.Sprintf("%s was enabled and is %s", Timer, now.Timer.Boot)
	case before.Timer.works() && before.Timer.Active == "active" && now.Timer.Active != "active":
		return fmt.Sprintf("%s ran and is %s", Timer, now.Timer.Active)
	}
	return ""
}

func (u Unit) why() string {
	if u.Error == "" {
		return u.Load
	}
	return u.Load + " (" + u.Error + ")"
}
