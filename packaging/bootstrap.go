package packaging

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Bootstrap has the settings of a new host.
type Bootstrap struct {
	Store string // URL of the store
	Root  string // sha256:HEX of the first root
	Agent string // URL of the package or static binary
	Sum   string // sha256 of it, in hexadecimal

	Service, Instance string // if the host's name does not contain them
	Balance           bool   // register with the load balancers after a successful first run
}

// MaxUserData is the largest size of user data in bytes. It is below the limits of all clouds, with room for
// additions of an operator.
const MaxUserData = 2 << 10

// packages returns the kinds of packages, with the commands that install them.
func packages() map[string]string {
	return map[string]string{
		".deb": "export DEBIAN_FRONTEND=noninteractive\ndpkg --force-confold -i $f || { apt-get update && apt-get -fyo " +
			"Dpkg::Options::=--force-confold install; }",
		".rpm": "rpm -U $f",
	}
}

// binary installs a static binary together with the units that a package would install.
const binary = `install $f /usr/bin/corpus-agent
cd /etc/systemd/system
cat >corpus-agent.service <<E
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
EnvironmentFile=-/etc/corpus/environment
Environment=HOME=/root
ExecStart=/usr/bin/corpus-agent deploy
TimeoutStartSec=5min
NotifyAccess=main
TimeoutStopSec=15min
KillMode=mixed
OOMPolicy=continue
SuccessExitStatus=6 130
LimitCORE=0
E
p=$(uname -n | cksum) p=$((${p%% *} % 300))
cat >corpus-agent.timer <<E
[Timer]
OnCalendar=*:$((p / 60))/5:$((p % 60))
RandomizedDelaySec=270
FixedRandomDelay=true
Persistent=true
[Install]
WantedBy=timers.target
E
systemctl daemon-reload`

// UserData returns a script that cloud-init runs at the first boot: it installs the agent after checking its
// digest, configures the root of trust, and deploys until that succeeds or fails permanently. Then it starts the
// timer. The host is registered with its load balancers only after a successful first run.
func (b Bootstrap) UserData() (string, error) {
	if err := b.check(); err != nil {
		return "", err
	}
	install, isPackage := packages()[path.Ext(strings.SplitN(b.Agent, "?", 2)[0])]
	if !isPackage {
		install = binary
	}
	deploy := "corpus-agent deploy"
	if b.Service != "" {
		deploy += " " + quote(b.Service) + " " + quote(b.Instance)
	}
	deploy += " --store " + quote(b.Store) + " --trust-root " + b.Root
	after := ""
	if b.Balance {
		after = "corpus-agent elb register\n"
	}
	text := "#!/bin/sh\nset -eu\nf=$(mktemp -d)/" + quote(path.Base(strings.SplitN(b.Agent, "?", 2)[0])) + `
curl -fsSL --retry 9 --retry-all-errors -o $f ` + quote(b.Agent) + "\necho \"" + b.Sum + "  $f\" | sha256sum -c\n" + install + `
n=0
until ` + deploy + `; do
c=$? n=$((n+1))
case $c in 5|6) [ $n -lt 90 ];; *) false;; esac || { systemctl enable --now corpus-agent.timer; exit $c; }
sleep 10
done
systemctl enable --now corpus-agent.timer
` + after
	if len(text) > MaxUserData {
		return "", diag.Usage.Hint(fmt.Errorf("the user data would have %d bytes, and %d is the most", len(text),
			MaxUserData), "give shorter URLs")
	}
	return text, nil
}

func (b Bootstrap) check() error {
	if u, err := url.Parse(b.Agent); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return diag.Usage.Hint(fmt.Errorf("%q is not a URL that a new host can fetch", b.Agent),
			"give --agent https://host/corpus-agent.deb, or of the static binary")
	}
	if len(b.Sum) != 64 || len(b.Root) != len("sha256:")+64 {
		return errors.New("a digest has 64 hexadecimal digits")
	}
	if (b.Service == "") != (b.Instance == "") {
		return diag.Usage.Hint(errors.New("a service needs an instance"), "give both --service and --instance, or neither")
	}
	if strings.ContainsAny(b.Store+b.Agent+b.Service+b.Instance, "\n\r\x00") {
		return errors.New("the settings of a new host must not contain line breaks")
	}
	return nil
}

// quote quotes a word for a shell.
func quote(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,", r)
	}) < 0
	if plain && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
