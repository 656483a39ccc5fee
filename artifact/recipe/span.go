package recipe

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Span is the range of a number, or of a duration in nanoseconds.
type Span struct {
	Least, Most int64
	Zero        bool // 0 is allowed too, although it is less than Least
}

// Durations returns the span of durations from least to most.
func Durations(least, most time.Duration) Span { return Span{Least: int64(least), Most: int64(most)} }

// Numbers returns the span of numbers from least to most.
func Numbers(least, most int64) Span { return Span{Least: least, Most: most} }

// AnyNumber returns the span of numbers that are not negative.
func AnyNumber() Span { return Numbers(0, math.MaxInt64) }

// OrZero returns the span extended by 0.
func (s Span) OrZero() Span {
	s.Zero = true
	return s
}

// Holds reports whether a value is in the span.
func (s Span) Holds(v int64) bool { return v >= s.Least && v <= s.Most || v == 0 && s.Zero }

// Duration parses a duration that has to be in the span.
func (s Span) Duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || !s.Holds(int64(d)) {
		return 0, fmt.Errorf("a duration %s was expected, such as 90s or 10m", s.OfDurations())
	}
	return d, nil
}

// Number parses a number that has to be in the span.
func (s Span) Number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !s.Holds(n) {
		return 0, fmt.Errorf("a number %s was expected", s.OfNumbers())
	}
	return n, nil
}

// OfDurations returns the span in words, such as "from 1s to 24h".
func (s Span) OfDurations() string {
	return s.words(func(n int64) string { return Short(time.Duration(n)) })
}

// OfNumbers returns the span in words, such as "from 1 to 100".
func (s Span) OfNumbers() string {
	return s.words(func(n int64) string { return strconv.FormatInt(n, 10) })
}

func (s Span) words(show func(int64) string) string {
	zero := ""
	if s.Zero && s.Least > 0 {
		zero = show(0) + ", or "
	}
	if s.Most == math.MaxInt64 {
		return zero + "of " + show(s.Least) + " or more"
	}
	return zero + "from " + show(s.Least) + " to " + show(s.Most)
}

// Short returns a duration without zero units: 2h, not 2h0m0s.
func Short(d time.Duration) string {
	text := strings.Replace(d.String(), "m0s", "m", 1)
	return strings.Replace(text, "h0m", "h", 1)
}

// HealthSpan returns the range of a duration or number of the section health. A release may also have 0, which means
// the host's setting.
func HealthSpan(key string) Span {
	switch key {
	case "grace":
		return Durations(0, 24*time.Hour)
	case "deadline":
		return Durations(time.Second, 24*time.Hour)
	case "interval":
		return Durations(10*time.Millisecond, time.Hour)
	case "timeout":
		return Durations(10*time.Millisecond, time.Hour)
	case "retries":
		return Numbers(0, 10000)
	}
	return Span{}
}
