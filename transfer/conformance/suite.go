package conformance

import (
	"testing"

	"go.uber.org/goleak"

	"baton/transfer"
)

// Factory makes the two ends of one plane.
type Factory struct {
	Listen func(id transfer.Identity, mem transfer.Memory, h transfer.PrefillHandler) (transfer.Prefill, error)
	Decode func(id transfer.Identity, mem transfer.Memory, h transfer.DecodeHandler) transfer.Decode
	// Framed says that Addr is a TCP address where package wire is spoken, so that a meddler
	// can be put between the ends. Without it those cases are skipped.
	Framed bool
}

type check struct {
	name   string
	framed bool
	run    func(t *testing.T, f Factory)
}

// Run runs every case. Each one ends with both ends closed, no goroutine left and no canary hit.
func Run(t *testing.T, f Factory) {
	for _, c := range [...]check{
		{"ChunksArriveWhole", false, chunksArriveWhole},
		{"BlocksLargerThanTheWindow", false, blocksLargerThanTheWindow},
		{"WordsArriveInOrder", false, wordsArriveInOrder},
		{"WhatNobodyWantsIsScrapped", false, unwantedIsScrapped},
		{"EveryWriteIsAnswered", false, everyWriteIsAnswered},
		{"EveryDialIsAnswered", false, everyDialIsAnswered},
		{"WrongSecretIsRefused", false, wrongSecret},
		{"WrongManifestIsRefusedWithBoth", false, wrongManifest},
		{"WrongRoleIsRefused", false, wrongRole},
		{"OwnBootIsRefused", false, ownBoot},
		{"ANewLinkReplacesTheOld", false, newLinkReplaces},
		{"NamesOfOneWorkerShareALink", false, namesShare},
		{"WrongSumIsOffThenRefused", false, wrongSum},
		{"CallbacksMayCallMethods", false, callbacksCallMethods},
		{"MethodsReturnWhileHandlersWait", false, methodsReturn},
		{"CloseWaitsForReceivers", false, closeWaits},
		{"CloseUnderLoad", false, closeUnderLoad},
		{"CancelRacesWithTheLastChunk", false, cancelRaces},
		{"StormKeepsCanaries", false, storm},
		{"FullControlQueueEndsTheLink", false, controlOverflow},
		{"CancelLeavesAStalledBlock", true, cancelStalled},
		{"CancelOfAnotherLeaseIsNotOurs", true, cancelOfAnother},
		{"CancelDropsQueuedWrites", true, cancelDropsQueued},
		{"AnyFlippedByteIsCaught", true, flippedByte},
		{"FlippedHeaderEndsTheLink", true, flippedHeader},
		{"OversizedChunksEndTheLink", true, oversizedChunks},
		{"OversizedFramesEndTheLink", true, oversizedFrames},
		{"ChunksOfAnOldBootEndTheLink", true, oldBoot},
		{"RepeatedLostAndReorderedWords", true, meddledWords},
		{"PeerGoneAtEveryStep", true, peerGone},
		{"HalfDeadLinksEnd", true, halfDead},
		{"IdleLinksStayUp", true, idleStaysUp},
		{"AnOldProofIsNoProof", true, replay},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.framed && !f.Framed {
				t.Skip("the plane does not speak package wire over TCP")
			}
			t.Cleanup(func() { // after the rig's own cleanup
				if !t.Failed() {
					goleak.VerifyNone(t)
				}
			})
			c.run(t, f)
		})
	}
}
