/** Shows a message in place of a page or section that throws while rendering. */

import { Component, type ComponentChildren } from "preact";
import { Button } from "./button";

interface BoundaryProps {
  /** The subject of the message. */
  subject: string;
  remedy: string;
  /** The address of the page. A change resets the boundary. */
  at?: string;
  children: ComponentChildren;
}

interface BoundaryState {
  at: string | undefined;
  failed: boolean;
}

export class Boundary extends Component<BoundaryProps, BoundaryState> {
  override state = { at: this.props.at, failed: false };

  static override getDerivedStateFromProps({ at }: BoundaryProps, was: BoundaryState) {
    return at === was.at ? null : { at, failed: false };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
    this.setState({ failed: true });
  }

  override render() {
    const { subject, remedy, children } = this.props;
    if (!this.state.failed) return children;
    return (
      <div class="error-box" role="alert">
        <p>
          <b>{subject} could not be displayed.</b>
        </p>
        <p class="quiet">{remedy}</p>
        <Button onClick={() => this.setState({ failed: false })}>Try again</Button>
      </div>
    );
  }
}
