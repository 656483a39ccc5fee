package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The headers of a request to a webhook.
const (
	// SignatureHeader holds "sha256=" and the HMAC of the body in hexadecimal digits.
	SignatureHeader = "X-Corpus-Signature"
	// DeliveryHeader holds the run's ID, or that of the disk of a guest that is ready. A retry sends the same ID, so that
	// a receiver can detect duplicates.
	DeliveryHeader = "X-Corpus-Delivery"
	// EventHeader holds the event.
	EventHeader = "X-Corpus-Event"
)

// Webhook is a Sender that posts a notice as JSON.
type Webhook struct {
	URL        string
	SecretFile string        // the file with the HMAC key; empty for unsigned requests
	Timeout    time.Duration // of each try
	Tries      int
	Pause      time.Duration // before the second try, doubled before each further one; 0 for one second
}

// Send implements Sender. It retries when the receiver is down or busy, but not when the receiver rejects the notice.
func (w Webhook) Send(ctx context.Context, n Notice) error {
	body, err := n.document()
	if err != nil {
		return fmt.Errorf("notifying the webhook: %w", err)
	}
	signature, err := w.sign(body)
	if err != nil {
		return fmt.Errorf("notifying the webhook: %w", err)
	}
	pause := cmp.Or(w.Pause, time.Second)
	for try := 1; ; try++ {
		retry, err := w.deliver(ctx, n, body, signature)
		if err == nil {
			return nil
		}
		if !retry || try >= w.Tries || !sleep(ctx, pause) {
			return diag.Notify.Hint(fmt.Errorf("notifying the webhook: %w (tries: %d)", err, try),
				"check notify.webhook in agent.yaml; the result of the run is not affected")
		}
		pause *= 2
	}
}

// sign returns the value of SignatureHeader for body, or "" without a secret.
func (w Webhook) sign(body []byte) (string, error) {
	if w.SecretFile == "" {
		return "", nil
	}
	secret, err := walk.ReadGiven(w.SecretFile)
	if err != nil {
		return "", fmt.Errorf("reading the webhook's secret: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) == 0 {
		return "", fmt.Errorf("%s is empty", w.SecretFile)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil)), nil
}

// deliver tries once, and reports whether the caller may retry. Its errors do not contain the URL, which is often a
// secret.
func (w Webhook) deliver(ctx context.Context, n Notice, body []byte, signature string) (retry bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("notify.webhook.url is not a URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "corpus-agent")
	req.Header.Set(DeliveryHeader, n.delivery())
	req.Header.Set(EventHeader, string(n.Event))
	if signature != "" {
		req.Header.Set(SignatureHeader, signature)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within notify.webhook.timeout (%s)", w.Timeout)
		}
		return true, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	retry = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusRequestTimeout
	return retry, fmt.Errorf("the server answered with status %d", resp.StatusCode)
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
