package locale_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/locale"
	"github.com/corpus-agent/corpus-agent/state/statetest"
)

// prepare adds locales to the host: /usr/lib/locale/locale-archive has a name in each line.
func prepare(t *testing.T, h *statetest.Host) {
	const archive = "/usr/lib/locale/locale-archive"
	tools := map[string]statetest.Tool{
		"locale":    func([]string, string) (string, error) { return "C\nPOSIX\nC.utf8\n" + h.Text(archive), nil },
		"localedef": func(args []string, _ string) (string, error) { h.Append(archive, args[4]+"\n"); return "", nil },
	}
	if h.Text("/usr/share/i18n/SUPPORTED") != "" {
		tools["locale-gen"] = func([]string, string) (string, error) {
			for l := range strings.Lines(h.Text("/etc/locale.gen")) {
				if name, _, ok := strings.Cut(l, " "); ok && name != "#" && name != "xx_XX.UTF-8" {
					h.Append(archive, strings.Replace(name, "UTF-8", "utf8", 1)+"\n")
				}
			}
			return "Generating locales\n", nil
		}
	}
	statetest.UseTools(t, h, tools)
}

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "locale",
		Functions: func(*statetest.Host) module.Table { return locale.Functions() },
		Prepare:   prepare,
		Cases:     statetest.Load(t, "../../../testdata/modules/system/locale.yaml"),
	})
}
