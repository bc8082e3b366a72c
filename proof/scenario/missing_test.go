package scenario

import "testing"

// waits skips a scenario whose part does not exist yet, and names the part.
func waits(t *testing.T, id string) {
	t.Helper()
	if Missing[id] == "" {
		t.Fatalf("%s waits for nothing: write its scenario", id)
	}
	t.Skipf("waits for %s", Missing[id])
}

func TestF05OrphansInALaterStage(t *testing.T)             { waits(t, "F05") }
func TestF06StagesApplyWhatTheyAgreedOn(t *testing.T)      { waits(t, "F06") }
func TestF57AReadThatOutlivesItsLease(t *testing.T)        { waits(t, "F57") }
func TestF68TheRankIsRemembered(t *testing.T)              { waits(t, "F68") }
func TestF83ALostLeaseIsRegisteredAgain(t *testing.T)      { waits(t, "F83") }
func TestF100WhatCannotMoveIsNotMoved(t *testing.T)        { waits(t, "F100") }
func TestF111TheOverloadSignalIsTheWorkers(t *testing.T)   { waits(t, "F111") }
func TestF113RemovalAndRestoreKeepTheirOrder(t *testing.T) { waits(t, "F113") }
func TestF116AnotherModelsRequestIsRefused(t *testing.T)   { waits(t, "F116") }
func TestF124ShortPromptsPassLongPrefills(t *testing.T)    { waits(t, "F124") }
func TestF126AnIdleRankTakesPart(t *testing.T)             { waits(t, "F126") }
