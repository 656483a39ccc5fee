package cron

import (
	"strings"
	"testing"
)

// FuzzCrontab adds jobs to arbitrary crontabs. The part above the marker line must not change, and a job that
// was added must be found again.
func FuzzCrontab(f *testing.F) {
	f.Add("", "/bin/true", "*/5", "", "", "")
	f.Add("MAILTO=x\n5 * * * * /bin/mine\n", "echo a=b", "5", "", "hello\nworld", "id")
	f.Add("x\n"+line+"\nA=1\n# c SALT_CRON_IDENTIFIER:one\n#DISABLED#1 2 3 4 5 a  b\n\n@daily  x y\n# left\n", "a  b",
		"random", "@daily", "# c ", "one")
	f.Add(line+"\n@\n#DISABLED#\n# SALT_CRON_IDENTIFIER\n=\n     \n", "x", "2:4", "", "", "")
	f.Fuzz(func(t *testing.T, text, command, minute, special, comment, id string) {
		p := present{Name: command, Minute: minute, Hour: "*", DayMonth: "*", Month: "*", DayWeek: "*", Special: special,
			Identifier: id, Comment: &comment}
		wanted, err := p.job()
		if err != nil {
			return
		}
		before := parse(text)
		after, word := before.set(wanted)
		if above, _, below := strings.Cut("\n"+before.String(), "\n"+line+"\n"); below &&
			!strings.HasPrefix("\n"+after.String(), above) {
			t.Errorf("%q became %q", text, after)
		}
		if word == same && after != before {
			t.Errorf("the crontab changed although it has the job")
		}
		if _, word := parse(after.String()).set(wanted); word != same {
			t.Errorf("%+v in %q: the second time it is %s in %q", p, text, word, after)
		}
	})
}
