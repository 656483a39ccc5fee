package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
		"Result,ExecMainCode,ExecMainStatus,ConditionResult", records.ServiceUnit)
	if err != nil {
		return unitRun{}
	}
	return parseUnitRun(service.Properties(out))
}

// parseUnitRun reads the properties of the unit. Versions of systemd before 232 have no InvocationID.
func parseUnitRun(says map[string]string) unitRun {
	const exited = "1" // CLD_EXITED
	u := unitRun{result: says["Result"], exited: says["ExecMainCode"] == exited,
		skipped: says["ConditionResult"] == "no" || says["Result"] == "exec-condition"}
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
	code := exit.Failed
	if u.exited && u.status != exit.OK {
		code = u.status
	}
	switch {
	case u.skipped:
		return exit.WithCode(exit.Failed, diag.Agent.Hint(fmt.Errorf("systemd skipped %s: a condition of the unit is not met",
			records.ServiceUnit), "systemctl status %s shows which", records.ServiceUnit))
	case unwritable != nil && u.exited && u.status == exit.OK:
		say("warning: %s ended with exit code 0, and its run could not keep a report: %v\n  hint: %s", records.ServiceUnit,
			unwritable, diag.HintOf(unwritable))
		return nil
	case unwritable != nil:
		return exit.WithCode(code, diag.Disk.Hint(fmt.Errorf("%s ended %s, and its run could not keep a report: %w",
			records.ServiceUnit, u, unwritable), "%s; then journalctl -u %s shows the run", diag.HintOf(unwritable),
			records.ServiceUnit))
	}
	err := fmt.Errorf("%s ended %s, and its run left no report", records.ServiceUnit, u)
	if said != "" {
		err = errors.New(err.Error() + ": " + said)
	}
	return exit.WithCode(code, diag.Agent.Hint(err, "journalctl -u %s", records.ServiceUnit))
}
