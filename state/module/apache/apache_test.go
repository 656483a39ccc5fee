package apache_test

import (
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/apache"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// links simulates a2enmod and the similar programs.
func links(t *testing.T, h *statetest.Host) {
	programs := map[string]statetest.Program{}
	for word, dir := range map[string]string{"mod": "mods", "site": "sites", "conf": "conf"} {
		ending := map[string]string{"mod": ".load", "site": ".conf", "conf": ".conf"}[word]
		programs["a2en"+word] = func(args []string, _ host.Command) (string, error) {
			return "", h.Files.Symlink("../"+dir+"-available/"+args[1]+ending, "/etc/apache2/"+dir+"-enabled/"+args[1]+ending)
		}
		programs["a2dis"+word] = func(args []string, _ host.Command) (string, error) {
			if args[1] == "mpm_event" {
				return "", errors.New("ERROR: it is essential")
			}
			return "", h.Files.Remove("/etc/apache2/" + dir + "-enabled/" + args[1] + ending)
		}
	}
	h.Provide(t, programs)
}

func TestConformance(t *testing.T) {
	for state, table := range apache.Tables() {
		statetest.Run(t, statetest.Suite{
			State:     state,
			Functions: func(*statetest.Host) module.Table { return table },
			Prepare:   links,
			Cases:     statetest.Load(t, "../../../testdata/modules/"+state+".yaml"),
		})
	}
}

// TestWithoutApache checks that an item that is already disabled succeeds, and that the error for others names
// the package to install.
func TestWithoutApache(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "apache_module",
		Functions: func(*statetest.Host) module.Table { return apache.Tables()["apache_module"] },
		Prepare: func(_ *testing.T, h *statetest.Host) {
			h.Commands = statetest.Commands(func(host.Command) (host.Output, error) {
				return host.Output{}, errors.New("no program runs")
			})
		},
		Cases: statetest.Load(t, "../../../testdata/modules/apache_none.yaml"),
	})
}
