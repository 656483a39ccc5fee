package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// The headers of a delivery.
const (
	// SignatureHeader is sha256= and the HMAC of the body in hexadecimal digits.
	SignatureHeader = "X-Corpus-Signature"
	// DeliveryHeader is the run's ID. It is the same at every try, so that a receiver can tell a
	// repetition.
	DeliveryHeader = "X-Corpus-Delivery"
	// EventHeader is the event.
	EventHeader = "X-Corpus-Event"
)

// Webhook posts a notice as JSON.
type Webhook struct {
	URL        string
	SecretFile string // file of the key that signs; empty for an unsigned delivery
	Timeout    time.Duration
	Tries      int
	Pause      time.Duration // before the second try, twice as long before each further one; 1 s by default
}

// Tell is part of Teller. A receiver that is down or busy is tried again; one that says no is not.
func (w Webhook) Tell(ctx context.Context, n Notice) error {
	body, err := n.document()
	if err != nil {
		return fmt.Errorf("notifying the webhook: %w", err)
	}
	signature, err := w.sign(body)
	if err != nil {
		return fmt.Errorf("notifying the webhook: %w", err)
	}
	pause := w.Pause
	if pause == 0 {
		pause = time.Second
	}
	for try := 1; ; try++ {
		again, err := w.deliver(ctx, n, body, signature)
		if err == nil {
			return nil
		}
		if !again || try >= w.Tries || !sleep(ctx, pause) {
			return diag.WithHint(fmt.Errorf("notifying the webhook: %w (tries: %d)", err, try), "the run itself is not touched by this; look at notify.webhook in agent.yaml")
		}
		pause *= 2
	}
}

// sign makes the value of SignatureHeader.
func (w Webhook) sign(body []byte) (string, error) {
	if w.SecretFile == "" {
		return "", nil
	}
	secret, err := os.ReadFile(w.SecretFile)
	if err != nil {
		return "", fmt.Errorf("reading its secret: %w", err)
	}
	secret = bytes.TrimRight(secret, "\r\n")
	if len(secret) == 0 {
		return "", fmt.Errorf("%s is empty", w.SecretFile)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil)), nil
}

// deliver tries once. Errors do not hold the URL: it is often a secret.
func (w Webhook) deliver(ctx context.Context, n Notice, body []byte, signature string) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("notify.webhook.url is no URL")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "corpus-agent")
	req.Header.Set(DeliveryHeader, n.Run)
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
		return true, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	again = resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("it answered with status %d", resp.StatusCode)
}

// sleep reports whether there was time for it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
