package members

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

// Limits of the answer of a member.
const (
	answerTime  = 5 * time.Second
	answerBytes = 1 << 20
)

// Measure asks a member for the metric of its class, in the text format of Prometheus. It follows no redirect and uses
// no proxy, so a member cannot make the node ask another host.
func Measure(ctx context.Context, g cloud.Guest, of cloud.Class) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	port, path, _ := strings.Cut(strings.TrimPrefix(of.Answers, ":"), "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+net.JoinHostPort(g.Address4, port)+"/"+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 1 << 14},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the member answers %d", answer.StatusCode)
	}
	return valueIn(io.LimitReader(answer.Body, answerBytes), of.Metric)
}

// valueIn returns the sum of the values of a metric in a text. A value is a number from 0 on.
func valueIn(text io.Reader, metric string) (float64, error) {
	sum, found := 0.0, false
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<16)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), metric)
		if !is || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		if at := strings.LastIndexByte(rest, '}'); at >= 0 {
			rest = rest[at+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			return 0, errors.New("the value of the metric is not a number from 0 on")
		}
		sum, found = sum+value, true
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	if !found || math.IsInf(sum, 0) {
		return 0, fmt.Errorf("the member gives no %s", metric)
	}
	return sum, nil
}
