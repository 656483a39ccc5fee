package main

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

func TestClassesAreSetAndRemoved(t *testing.T) {
	s := newCloud(t)
	const app = "guest class set app --project shop --env prod --image bookworm --min 2 --max 6 --yes"
	s.expect(2, app, "nothing decides how many of 2 to 6 members run")
	s.expect(0, app+" --metric busy --answers :8080/metrics --above 50 --below 10.5 --name www.example.com --drain 2m",
		"+ class app\n")
	var of shownClass
	s.json("guest class info app", &of)
	if of.Region != "eu1" || of.For != "5m" || of.Away != "10m" || of.Drain != "2m" || of.Wanted != 2 ||
		len(of.Members) > 0 || of.FirstPort == 0 || of.FirstAddress == 0 || len(of.ID) != 32 {
		t.Errorf("the class is %+v", of)
	}
	first := of.FirstPort
	s.expect(0, "guest class set app --max 9 --yes", "~ class app\n    max: 6 -> 9\n")
	s.expect(0, "guest class ls", "2 to 9   busy at :8080/metrics above 50 or below 10.5 for 5m  www.example.com")
	s.expect(2, "guest class set app --env dev --yes", "--env of a class that exists cannot be changed")
	s.expect(2, "guest class set app --below 60 --yes", "60 is not below 50")
	s.expect(2, "guest class set app --above 1e9 --yes", "such as 50 or 0.75")
	s.expect(2, "guest class set app --away 2m --yes", "write a time of 3m to 24h")
	s.expect(2, "guest class set app --answers http://192.0.2.1/ --yes", "such as :8080/metrics")
	s.expect(2, "guest class set bare --project shop --env prod --yes", "a new class has no --image")
	s.expect(2, "guest class set n-1 --project shop --env prod --image bookworm --yes", "such as web1")
	s.expect(2, "guest class set dev --project shop --env dev --image bookworm --yes", "give --region")
	s.expect(2, "guest create app3 --project shop --env prod --image bookworm --yes", "the guest app3 is that of")
	s.expect(0, "guest create web1 --project shop --env prod --image bookworm --yes", "ssh_port: 40000")
	s.json("guest class info app", &of)
	if of.FirstPort != first || of.FirstPort <= cloud.FirstPort {
		t.Errorf("the first port was %d, and is %d", first, of.FirstPort)
	}
	s.expect(0, "guest class info app", "members: 2 of 2 to 9")
	s.expect(2, "guest class rm ap --yes", "there is no guest class ap")
	s.expect(0, "guest class rm app --yes", "- class app")
	s.expect(0, "guest class ls", "CLASS")
	if strings.Contains(s.out, "app") {
		t.Errorf("the class is there:\n%s", s.out)
	}
}
