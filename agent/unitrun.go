package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// unitRun is what systemd knows of the newest run of the agent's unit.
type unitRun struct {
	id      string // differs between runs; "" if systemd knows no run
	result  string // in systemd's words, such as exit-code
	exited  bool   // the process ended by itself, with status
	status  int    // the exit code, or the number of a signal
	skipped bool   // a condition of the unit was not met
}

// askUnitRun asks systemd for the newest run of the unit.
func askUnitRun(ctx context.Context) unitRun {
	out, err := site.Systemctl(ctx, 5*time.Second, "show", "--property=InvocationID,ExecMainStartTimestampMonotonic,"+
		"Result,ExecMainCode,ExecMainStatus,ConditionResult,ConditionTimestampMonotonic", records.ServiceUnit)
	if err != nil {
		return unitRun{}
	}
	return parseUnitRun(service.Properties(out))
}

// parseUnitRun reads the properties of the unit. Versions of systemd before 232 have no InvocationID.
func parseUnitRun(says map[string]string) unitRun {
	const exited = "1"                                    // CLD_EXITED
	checked := says["ConditionTimestampMonotonic"] != "0" // else the unit was never started
	u := unitRun{result: says["Result"], exited: says["ExecMainCode"] == exited,
		skipped: says["ConditionResult"] == "no" && checked || says["Result"] == "exec-condition"}
	if began := says["ExecMainStartTimestampMonotonic"]; says["InvocationID"] != "" || began != "" && began != "0" {
		u.id = says["InvocationID"] + "/" + began
	}
	u.status, _ = strconv.Atoi(says["ExecMainStatus"])
	return u
}

// unknownTries is how often the unit is started while systemd does not know what became of the run.
const unknownTries = 3

// again reports whether the unit is to be started again, since the start was answered by a run that had begun before,
// or since another run had the lock. before is the newest run before the start.
func (u unitRun) again(before unitRun, tries int) bool {
	switch {
	case u.skipped:
		return false
	case u.id == "" || u.id == before.id:
		return tries+1 < unknownTries
	}
	return u.exited && u.status == exit.Locked
}

func (u unitRun) String() string {
	switch {
	case u.exited:
		return fmt.Sprintf("with exit code %d", u.status)
	case u.result == "" || u.id == "":
		return "with a result that systemd does not know"
	}
	return "with " + u.result
}

// unreported returns the error of a run of the unit that left no report, with the exit code of the run. said is what
// systemctl wrote, and unwritable is the reason why the state directory cannot be written, if it cannot. For a run that
// succeeded and could not keep its report, the result is a warning.
func (u unitRun) unreported(said string, unwritable error, say func(format string, args ...any)) error {
	const unit = records.ServiceUnit
	switch {
	case u.skipped:
		return exit.WithCode(exit.Failed, diag.Agent.Hint(
			errors.New("systemd skipped "+unit+": a condition of the unit is not met"), "systemctl status %s shows which", unit))
	case unwritable != nil && u.exited && u.status == exit.OK:
		say("warning: %s ended with exit code 0, and its run could not keep a report: %v\n  hint: %s", unit, unwritable,
			diag.HintOf(unwritable))
		return nil
	case unwritable != nil:
		return exit.WithCode(u.code(), diag.Disk.Hint(fmt.Errorf("%s ended %s, and its run could not keep a report: %w",
			unit, u, unwritable), "%s; then journalctl -u %s shows the run", diag.HintOf(unwritable), unit))
	}
	err := strings.TrimSuffix(fmt.Sprintf("%s ended %s, and its run left no report: %s", unit, u, said), ": ")
	return exit.WithCode(u.code(), diag.Agent.Hint(errors.New(err), "journalctl -u %s", unit))
}

// code returns the exit code of a run without a report.
func (u unitRun) code() int {
	if u.exited && u.status != exit.OK {
		return u.status
	}
	return exit.Failed
}
