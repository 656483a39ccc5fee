package config

import (
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// Span returns the range of a key that takes a number or a duration.
func (k Key) Span() recipe.Span {
	const month = 30 * 24 * time.Hour
	if key, of := strings.CutPrefix(k.Name, "health."); of {
		return recipe.HealthSpan(key)
	}
	switch k.Name {
	case "converge.timeout", "hooks.timeout", "fetch.timeout":
		return recipe.Durations(time.Second, month)
	case "converge.stop_timeout", "fetch.retry":
		return recipe.Durations(time.Second, 24*time.Hour).OrZero()
	case "notify.webhook.timeout", "elb.timeout":
		return recipe.Durations(time.Second, time.Hour)
	case "reports.heartbeat":
		return recipe.Durations(time.Minute, 12*time.Hour)
	case "notify.webhook.tries":
		return recipe.Numbers(1, 100)
	}
	if k.Kind == Number {
		return recipe.AnyNumber()
	}
	return recipe.Span{}
}

// Range describes the values of a key that takes numbers or durations; "" for any other key.
func (k Key) Range() string {
	switch k.Kind {
	case Number:
		return k.Span().OfNumbers()
	case Duration:
		return k.Span().OfDurations()
	}
	return ""
}
