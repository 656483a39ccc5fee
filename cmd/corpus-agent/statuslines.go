package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// statusLines are the lines of a status: a name and a text, in columns.
type statusLines struct{ w io.Writer }

func (l statusLines) say(name, format string, args ...any) {
	fmt.Fprintf(l.w, "%s\t%s\n", name, indented("\t", fmt.Sprintf(format, args...)))
}

// deployed prints the deployed releases.
func (l statusLines) deployed(s inspect.Status) {
	switch {
	case s.Deployed != nil:
		l.say("deployed", "%s", headline(s))
		if s.Since != nil {
			l.say("since", "%s", when(*s.Since))
		}
		if s.StandsFor != nil {
			l.say("stands in for", "%s, whose files were missing on the disk and were not fetched again", s.StandsFor)
		}
	case s.BaseAlone != nil:
		l.say("deployed", "no release of the service yet; only %s is converged", s.BaseAlone)
	case s.Bootstrapped:
		l.say("deployed", "nothing")
	default:
		l.say("deployed", "nothing; this host has no root of trust")
	}
	if s.RootLost() {
		l.say("root of trust",
			"lost: runs converge what is on the disk and end with exit code 4 until corpus-agent deploy --trust-root FILE")
	}
}

// units prints the releases that the units of the deployed pair run.
func (l statusLines) units(s inspect.Status) {
	for _, u := range s.Units {
		l.say("unit", "%s", unitLine(u))
	}
}

// channels prints the channels that the host follows, and the release to which a rollback returns.
func (l statusLines) channels(s inspect.Status) {
	for _, c := range s.Channels {
		l.say("channel", "%s", c)
	}
	if s.Previous != nil {
		l.say("previous", "%s", s.Previous)
	}
}

// store prints the store that the next run reads, and when its signatures expire.
func (l statusLines) store(s inspect.Status) {
	if s.Store != "" {
		l.say("store", "%s", storeLine(s))
	}
	if len(s.Expires) > 0 {
		l.say("signed until", "%s (%s)", s.Expires[0].Expires.Local().Format("2006-01-02 15:04 MST"), s.Expires[0].Role)
	}
	for _, e := range s.Expiring {
		l.say("expires soon", "%s", e)
	}
	if s.Rekeyed != "" {
		l.say("host key", "another one than is registered first for its name (%s): its reports and its results in rollouts "+
			"count for nothing; if this machine replaced another one: corpus host forget %s", s.Rekeyed, s.RekeyedAs)
	}
}

// underWay prints the run that is under way, and the reasons why runs could not start or end.
func (l statusLines) underWay(s inspect.Status) {
	if s.Running != nil {
		l.say("running", "%s", runningLine(s))
	}
	if len(s.Waiting) > 0 {
		l.say("waiting", "in the queue of systemd: %s; systemctl list-jobs --after", strings.Join(s.Waiting, ", "))
	}
	if r := s.Refused; r != nil {
		l.say("refused", "%s", refusedLine(*r))
	}
	for _, text := range s.Uncontrolled {
		l.say("refused", "every run, with exit code 4: %s", text)
	}
	if s.Unwritable != "" {
		l.say("disk", "%s; until then runs leave no report", s.Unwritable)
	}
	if s.Unreported != nil {
		l.say("unreported", "%s", s.Unreported)
		if s.Unwritable == "" && len(s.Uncontrolled) == 0 {
			l.say("disk",
				"what the run could not write is in that journal; where this command can write it, look at the limits of the "+
					"unit: systemctl cat corpus-agent.service")
		}
	}
	switch {
	case s.Cut != nil && s.Cut.Ended:
		l.say("not finished", "%s", s.Cut)
	case s.Cut != nil:
		l.say("interrupted", "%s", s.Cut)
	}
}

// runningLine returns a text with the run under way and its step.
func runningLine(s inspect.Status) string {
	text := fmt.Sprintf("%s, process %d, since %s", s.Running.Command, s.Running.PID, when(s.Running.Since))
	if s.Doing != "" {
		text += "; in " + s.Doing
	}
	return text
}

// keptAway prints the releases that are not deployed now, with the reason.
func (l statusLines) keptAway(s inspect.Status) {
	if s.Hold != nil {
		l.say("held", "%s", strings.TrimSpace("since "+when(s.Hold.Since)+" "+s.Hold.Reason))
	}
	for _, t := range s.Turns {
		if t.Comes() {
			l.say("waits", "%s of %s: %s", t.Release, t.Channel, t)
		}
	}
	for _, r := range s.Withdrawn {
		text := fmt.Sprintf("%s %s", r.Release, r.When())
		if r.Channel != (artifact.Ref{}) {
			text += fmt.Sprintf("; %s names it, and this host keeps %s", r.Channel, s.Keeps(r))
		}
		l.say("withdrawn", "%s", text)
	}
	if a := s.Away; a != nil {
		l.say("out", "of %s since %s, run %s; the next run that ends healthy enters: corpus-agent deploy",
			elb.Balancers{Names: a.Names, TargetGroups: a.TargetGroups}, when(a.Since), a.Run)
	}
	if f := s.Postponed; f != nil {
		l.say("retried", "%s, %s: it failed because of the host %s, last in run %s: %s; at once: %s", f.Pair,
			f.When(time.Now()), diag.Count(f.Failures, "time"), f.Run, f.Reason, f.AtOnce())
	}
}

// quarantined prints the releases in quarantine: the relevant ones, or all.
func (l statusLines) quarantined(s inspect.Status, named *ledger.Pair, all bool) {
	shown, others := s.Recent(named)
	if all {
		shown, others = s.Quarantined, 0
	}
	for _, b := range shown {
		l.say("quarantined", "%s since run %s: %s", b.What(), b.Run, b.Reason)
		if version := b.Under(named); version != "" {
			l.say("", "%s is not run here: it has the bytes of %s", version, b.What())
		}
	}
	if others > 0 {
		l.say("", "%d older: corpus-agent status --all", others)
	}
}

// found prints the other projects of the host, and the differences from the deployed releases.
func (l statusLines) found(s inspect.Status) {
	for _, o := range s.Others {
		what := "nothing deployed"
		if o.Deployed != nil {
			what = o.Deployed.String()
			if o.Since != nil {
				what += " since " + when(*o.Since)
			}
		}
		if o.Failing != nil {
			what += fmt.Sprintf("; the host stays on %s, which failed", o.Failing)
		}
		l.say("project", "%s: %s", o.Name, what)
		if o.Failed != "" {
			l.say("", "its last run %s failed: %s", o.FailedIn, o.Failed)
		}
	}
	for _, d := range s.Damaged {
		l.say("damaged", "%s", d)
	}
	for _, d := range s.Drift {
		l.say("drift", "%s", d)
	}
	if len(s.Always) > 0 {
		named := s.Always
		if len(named) > 3 {
			named = append(slices.Clone(named[:3]), fmt.Sprintf("%d more", len(named)-3))
		}
		l.say("no drift", "%s: at every run; unless, onlyif or creates lets a state act only where it has to",
			strings.Join(named, ", "))
	}
}

// unmask returns the command to run first if the timer is masked, since systemctl enable fails then.
func unmask(off string) string {
	if off == "masked" {
		return "systemctl unmask corpus-agent.timer, and then "
	}
	return ""
}

// runs prints the last run and the next one.
func (l statusLines) runs(s inspect.Status) {
	if s.NextRun != nil {
		l.say("next run", "%s", diag.Stamp(*s.NextRun))
	}
	if s.TimerOff != "" {
		l.say("next run", "none: corpus-agent.timer is %s; %ssystemctl enable --now corpus-agent.timer starts it", s.TimerOff,
			unmask(s.TimerOff))
	}
	if s.Hidden {
		l.say("last run", "only root may see it, and whether a run is under way: sudo corpus-agent status")
	}
	if r := s.LastRun; r != nil {
		l.say("last run", "%s %s %s", r.Command, r.Outcome, when(r.Ended))
		if r.Error != "" {
			l.say("", "%s", r.Error)
		}
	}
}

// indented returns a text whose lines after the first begin with indent.
func indented(indent, text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+indent)
}

// storeLine returns the store that the next run reads, and the one that the last run read if it is different.
func storeLine(s inspect.Status) string {
	if s.Host.Store == "" || s.Host.Store == s.Store {
		return s.Store
	}
	return fmt.Sprintf("%s, from the next run on; until now %s", s.Store, s.Host.Store)
}

// headline returns a text with the deployed pair, and the releases that run in its place.
func headline(s inspect.Status) string {
	text := s.Deployed.String()
	if s.Failing != nil {
		text = fmt.Sprintf("%s; the host stays on %s, which failed", text, s.Failing)
	}
	for _, u := range s.Units {
		switch {
		case u.Deployed:
		case u.Release == "":
			text += fmt.Sprintf("; %s runs an earlier release", u.Unit)
		default:
			text += fmt.Sprintf("; %s runs %s", u.Unit, u.Release)
		}
	}
	return text
}

// unitLine returns a text with the state of a unit and the release that it runs.
func unitLine(u service.Unit) string {
	text := u.Unit + ": " + u.Active
	if u.Release != "" {
		text += ", runs " + u.Release
	}
	if u.Since != nil && u.PID != 0 {
		text += fmt.Sprintf(", process %d since %s", u.PID, when(*u.Since))
	}
	return text
}

// when formats a time together with its age.
func when(t time.Time) string {
	if time.Now().Before(t) {
		return diag.Stamp(t) + " (in the future by the clock of this host)"
	}
	return fmt.Sprintf("%s (%s ago)", diag.Stamp(t), diag.Elapsed(time.Since(t)))
}
