// Search without a server. Browsers start no workers for pages that are opened from a folder (file:), so there the
// script of a worker runs in a hidden frame. It stands in for what the theme would fetch from the network.
if (location.protocol === "file:") {
  window.Worker = class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.early = []; // messages that came before the script was there
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.addEventListener(
        "load",
        () => {
          const inside = frame.contentWindow;
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = inside.document.createElement("script");
          script.src = url;
          script.addEventListener("load", () => {
            this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
            this.early.splice(0).forEach((data) => this.postMessage(data));
          });
          inside.document.body.append(script);
        },
        { once: true },
      );
      document.body.append(frame);
    }
    postMessage(data) {
      this.early.push(data);
    }
    terminate() {}
  };
}
