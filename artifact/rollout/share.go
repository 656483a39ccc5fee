package rollout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Share is a part of the whole in hundredths of a percent. Its text is a percentage: signed files contain no fractions.
type Share int

// Shares of a whole.
const (
	Percent Share = 100
	All     Share = 100 * Percent
)

func (s Share) String() string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%02d", s/Percent, s%Percent), "0"), ".") + "%"
}

// ParseShare parses a percentage such as 5% or 0.25%.
func ParseShare(text string) (Share, error) {
	number, ok := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(f >= 0 && f <= 100) || strings.ContainsAny(number, "eExXpP_+-") {
		return 0, diag.Plan.Hint(fmt.Errorf("%q is not a share of hosts", text), "write a percentage, such as 5%% or 0.25%%")
	}
	s := Share(f*float64(Percent) + 0.5)
	if f > 0 && s == 0 {
		return 0, diag.Plan.Hint(fmt.Errorf("%s is less than a hundredth of a percent", text), "write 0.01%% or more")
	}
	return s, nil
}

// Of returns the number of hosts in a share of n, rounded up.
func (s Share) Of(n int) int { return int((int64(s)*int64(n) + int64(All) - 1) / int64(All)) }

// MarshalText formats a percentage.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a percentage.
func (s *Share) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShare(string(text))
	return err
}

// Duration is a time.Duration whose text has no zero units: 90m, 1h30m.
type Duration time.Duration

func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText formats a duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// ParseWaves parses waves as NAME=SHARE:SOAK,..., where NAME= and :SOAK may be missing: 1%:1h,10%:4h,100%.
func ParseWaves(text string) ([]Wave, error) {
	var waves []Wave
	for _, one := range strings.Split(text, ",") {
		var w Wave
		var err error
		rest := strings.TrimSpace(one)
		if name, after, ok := strings.Cut(rest, "="); ok {
			w.Name, rest = name, after
			if name == "" || strings.ContainsAny(name, " :%") {
				return nil, diag.Plan.Hint(fmt.Errorf("%q is not a name of a wave", name), "write --waves canary=1%%:1h,100%%")
			}
		}
		share, soak, soaks := strings.Cut(rest, ":")
		if w.Share, err = ParseShare(share); err != nil {
			return nil, fmt.Errorf("wave %q: %w", one, err)
		}
		if soaks {
			if err := w.Soak.UnmarshalText([]byte(soak)); err != nil {
				return nil, diag.Plan.Hint(fmt.Errorf("wave %q: %q is not a time", one, soak),
					"write one with its unit, such as 1h or 90m")
			}
		}
		waves = append(waves, w)
	}
	return waves, nil
}

// ParseHalt parses the limits at which a rollout stops: a number of hosts, a share, or both: 2,5%.
func ParseHalt(text string) (h Halt, err error) {
	for _, one := range strings.Split(text, ",") {
		one = strings.TrimSpace(one)
		if strings.HasSuffix(one, "%") {
			if h.Share, err = ParseShare(one); err != nil {
				return Halt{}, err
			}
			continue
		}
		if h.Hosts, err = strconv.Atoi(one); err != nil || h.Hosts < 1 {
			return Halt{}, diag.Plan.Hint(fmt.Errorf("%q is not a limit of failed hosts", one),
				"write a number, a share, or both: --halt-at 2,5%%")
		}
	}
	return h, nil
}

func (h Halt) String() string {
	switch {
	case h.Hosts > 0 && h.Share > 0:
		return fmt.Sprintf("%d,%s", h.Hosts, h.Share)
	case h.Share > 0:
		return h.Share.String()
	case h.Hosts > 0:
		return strconv.Itoa(h.Hosts)
	}
	return "never"
}
