package yaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// states returns an SLS text like the output of a template: n states with a few arguments each.
func states(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `
u%04d:
  user.present:
    - uid: %d
    - usergroup: True
    - fullname: User %d
    - shell: /bin/bash
    - home: /home/u%04d
    - groups: ["users", "games"]
    - remove_groups: False
  ssh_auth.present:
    - user: u%04d
    - enc: ssh-ed25519
    - comment: 'u%04d@example'
    - names:
      - AAAAC3NzaC1lZDI1NTE5AAAAIGq58euPfTOI9PnVhvZumf1UCA3yxEbw5YZosJwIoW3Q
    - require:
      - user: u%04d
`, i, 3000+i, i, i, i, i, i)
	}
	return b.String()
}

func BenchmarkLoadStates(b *testing.B) {
	src := states(400)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := yaml.LoadString(src, "users.sls"); err != nil {
			b.Fatal(err)
		}
	}
}
