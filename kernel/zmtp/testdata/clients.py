"""Test the sockets of package zmtp with libzmq clients. Print "ok", or fail and say what is wrong.

Usage: clients.py ROUTER PUB

The arguments are addresses. The router sends each message back. The message "publish TOPIC COUNT SIZE"
to the router makes the publisher publish COUNT messages [TOPIC, number, SIZE bytes].
"""

import sys
import threading

import zmq

PATIENCE = 60_000  # milliseconds
router, pub = sys.argv[1:]
context = zmq.Context()


def connect(kind, address, **options):
    socket = context.socket(kind)
    socket.linger, socket.rcvtimeo, socket.sndtimeo = 0, PATIENCE, PATIENCE
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(address)
    return socket


def check(got, want):
    if got != want:
        sys.exit(f"got {str(got)[:200]}, want {str(want)[:200]}")


def ask(frames, **options):
    with connect(zmq.DEALER, router, **options) as socket:
        socket.send_multipart(frames)
        check(socket.recv_multipart(), frames)


# Requests with and without an identity, of all sizes, with the protocol's heartbeats, from many
# clients at once.
for size in (0, 1, 255, 256, 65_535, 65_536, 70_000, 5_000_000):
    ask([b"x" * size])
    ask([b"", b"y" * size, b""], routing_id=b"somebody")
ask([b"%d" % i for i in range(300)])
ask([b"beats"], heartbeat_ivl=10, heartbeat_timeout=60000)
threads = [threading.Thread(target=ask, args=([b"%d" % i],)) for i in range(40)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

# A connection with heartbeats stays open while it is idle.
with connect(zmq.DEALER, router, heartbeat_ivl=20, heartbeat_timeout=60000) as socket:
    threading.Event().wait(0.3)
    socket.send_multipart([b"still there"])
    check(socket.recv_multipart(), [b"still there"])

# A reply to an identity that two connections share.
with connect(zmq.DEALER, router, routing_id=b"twin") as first, connect(zmq.DEALER, router, routing_id=b"twin") as second:
    for socket in (first, second):
        socket.send_multipart([b"hello"])
        check(socket.recv_multipart(), [b"hello"])

# Heartbeats.
for socket in [connect(zmq.REQ, router) for _ in range(3)]:
    for text in (b"ping", b"", b"x" * 10_000):
        socket.send(text)
        check(socket.recv(), text)

# Publishing by topic: everything arrives, in order.
asker = connect(zmq.DEALER, router)


def publish(topic, count, size):
    asker.send_multipart([b"publish %s %d %d" % (topic, count, size)])


def first(socket):
    """Wait until the publisher knows of a subscription, which may be later than the client."""
    while True:
        publish(b"probe", 1, 1)
        if socket.poll(50):
            break
    while socket.poll(200):
        socket.recv_multipart()


everything, some = connect(zmq.SUB, pub), connect(zmq.SUB, pub)
everything.subscribe(b"")
some.subscribe(b"a")
some.subscribe(b"probe")
first(everything)
first(some)
while everything.poll(200):
    everything.recv_multipart()
some.unsubscribe(b"probe")
publish(b"b", 3, 10)
publish(b"ab", 5000, 100)
publish(b"a", 2, 3_000_000)
want = [[b"ab", b"%d" % i, b"x" * 100] for i in range(5000)] + [[b"a", b"%d" % i, b"x" * 3_000_000] for i in range(2)]
for message in want:
    check(some.recv_multipart(), message)
for message in [[b"b", b"%d" % i, b"x" * 10] for i in range(3)] + want:
    check(everything.recv_multipart(), message)
print("ok")
