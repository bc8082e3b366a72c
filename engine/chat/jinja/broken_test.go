package jinja

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	unbroken = true
	os.Exit(m.Run())
}

// TestAPanicFailsTheRenderingAlone holds the end of J4.
func TestAPanicFailsTheRenderingAlone(t *testing.T) {
	unbroken = false
	defer func() { unbroken = true }()
	tpl, err := Parse("{{ strftime_now('%d') }}")
	if err != nil {
		t.Fatal(err)
	}
	var broken *Broken
	out, err := tpl.Render(NewDict(), plenty, func() time.Time { panic("no clock") })
	if !errors.As(err, &broken) || broken.Value != "no clock" || !strings.Contains(string(broken.Stack), "strftimeNow") || out.Len() > 0 {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := tpl.Render(NewDict(), plenty, then); err != nil {
		t.Error(err)
	}
}
